"""Builds the engines' settings from a configuration. Only reads the machine's devices and cores."""

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.engine_defaults import (
    CPU_AUDIO_SECONDS,
    CPU_PATCHES,
    CPU_SLOTS,
    GPU_AUDIO_SECONDS,
    GPU_PATCHES,
    GPU_SLOTS,
)
from sglang_omni.config.engine_options import (
    AudioEncoderOptions,
    ImageEncoderOptions,
    TalkerOptions,
    ThinkerOptions,
)
from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.media_options import MediaOptions
from sglang_omni.config.tree import Config
from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.launch import build_environment as encoder_environment
from sglang_omni.engines.media_decoder.contract import MediaDecoderSettings
from sglang_omni.engines.runtime.gpus import VISIBLE_DEVICES_VARIABLE
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.engines.runtime.process_output import OutputRules
from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.engines.speech.launch import build_environment as talker_environment
from sglang_omni.media.fetch import FetchPolicy
from sglang_omni.media.limits import Kind, MediaLimits, MediaRules, VideoRules
from sglang_omni.placement.place_options import Place, get_places
from sglang_omni.serving.places import spread

EngineOptions = (
    ThinkerOptions | TalkerOptions | ImageEncoderOptions | AudioEncoderOptions | ImageOptions
)


class Deadlines(TypedDict):
    """Time limits that the options of every engine have in common."""

    start_deadline_s: float
    phase_deadline_s: float
    step_deadline_s: float


# The talker time-shares its slots, so it accepts many more requests than it has slots.
TALKER_MAX_REQUESTS = 2048
# Attention within an image is quadratic: one core encodes this many pixels with Ming-mini in 1.2 s
# and twelve times as many in 123 s. They are as many patches as a forward pass takes.
CPU_IMAGE_PIXELS = 1 << 20
# An eighth of the model's pixels of a video, and a lower number of frames, since frames have a
# minimum size. These limits allow up to 1,700 tokens, which one core encodes in 2 s and the thinker
# of Ming-mini reads in less than 1 s. Nobody else is answered while it reads one prompt: twice as
# many made others wait for 3 to 5 s. The model's own limits would take 14 s and more than 40 s.
CPU_VIDEO_SHARE, CPU_VIDEO_FRAMES = 8, 24


def resolve_device(device: str) -> str:
    """Return the device; `auto` is CUDA if a GPU is visible, else the CPU."""
    if device != "auto":
        return device
    return "cuda" if glob.glob("/dev/nvidia[0-9]*") else "cpu"


def resolve_dtype(dtype: str, device: str) -> str:
    """Return the dtype; `auto` is bfloat16 on a GPU, and float32 on a CPU (bfloat16 is slow)."""
    if dtype != "auto":
        return dtype
    return "bfloat16" if device == "cuda" else "float32"


def build_output_rules(config: Config) -> OutputRules:
    """Return where the engines' output goes."""
    is_shown = config.verbose or config.log_level == "debug"
    return OutputRules(config.log_folder, is_shown)


def build_talker_specs(config: Config, checkpoint: Path) -> tuple[ProcessSpec, ...]:
    """Return the replicas of the talker: one for each entry of `place` or `gpus`, or `replicas`.

    A GPU may be named more than once.

    Raises:
        ConfigError: `replicas` is set on GPUs or with `place`, or a place cannot be used.
    """
    spec = build_talker_spec(config, checkpoint)
    settings: TalkerSettings = spec.settings
    places = _get_talker_places(config, "cpu" if settings.device == "cpu" else "cuda")
    threads = settings.threads
    if threads is not None:
        num_local = sum(not place.node for place in places)
        threads = max(1, threads // max(1, num_local))
    all_settings = [replace(settings, device=place.device, threads=threads) for place in places]
    return spread(spec, all_settings, places, config)


def _get_talker_places(config: Config, device: str) -> tuple[Place, ...]:
    options = config.talker
    places = get_places(config, "talker", device)
    if options.replicas != 1 and (places or device != "cpu"):
        raise make_option_error(
            "talker.replicas",
            "talker.replicas is only for a CPU without talker.place; name a place, or a GPU in "
            "talker.gpus, for each replica",
        )
    if device == "cpu":
        return places or (Place(),) * options.replicas
    return places or tuple(Place(gpus=(gpu,)) for gpu in options.gpus or (0,))


def build_talker_spec(config: Config, checkpoint: Path) -> ProcessSpec:
    """Return the talker on the first of its GPUs. Raises `ConfigError`."""
    options, device = config.talker, resolve_device(config.device)
    dtype = resolve_dtype(config.dtype, device)
    if options.fp8 and not (device == "cuda" and dtype == "bfloat16" and options.graphs):
        raise make_option_error("talker.fp8", "talker.fp8 needs a GPU, bfloat16 and graphs")
    settings = TalkerSettings(
        checkpoint=checkpoint,
        device=device if device == "cpu" else f"cuda:{(options.gpus or (0,))[0]}",
        dtype=dtype,
        slots=options.slots or (CPU_SLOTS if device == "cpu" else GPU_SLOTS),
        min_patches=options.min_patches,
        max_patches=options.max_patches,
        context=options.context,
        threads=get_num_threads() if device == "cpu" else None,
        graphs=options.graphs,
        fp8=options.fp8,
        admission=options.admission,
    )
    return ProcessSpec(
        "talker",
        "sglang_omni.engines.speech.worker:open_worker",
        settings,
        talker_environment(device, get_num_threads()),
        **get_deadlines(options),
        max_in_flight=TALKER_MAX_REQUESTS,
        output=build_output_rules(config),
    )


def get_deadlines(options: EngineOptions) -> Deadlines:
    """Return the time limits of an engine."""
    return {
        "start_deadline_s": options.start_deadline_s,
        "phase_deadline_s": options.phase_deadline_s,
        "step_deadline_s": options.step_deadline_s,
    }


def build_encoder_specs(config: Config, checkpoint: Path) -> dict[Kind, tuple[ProcessSpec, ...]]:
    """Return the replicas of the encoder for each kind of media, none on a text-only server.

    On GPUs there are separate image and audio encoders, on a CPU one encoder for both.
    """
    if config.text_only:
        return {}
    shared = build_encoder_settings(config, checkpoint)
    if shared.device == "cpu":
        if config.audio_encoder.place:
            raise make_option_error(
                "audio_encoder.place",
                "audio_encoder.place: on a CPU one engine encodes both; set image_encoder.place",
            )
        places = get_places(config, "image_encoder", "cpu") or (Place(),)
        replicas = _build_encoder_replicas("encoders", shared, places, config)
        return {"image": replicas, "video": replicas, "audio": replicas}
    images = replace(shared, audio=False)
    image_places = get_places(config, "image_encoder", "cuda", shared.tp_size) or tuple(
        Place(gpus=gpus) for gpus in get_image_encoder_gpus(config)
    )
    audio = replace(shared, images=False, tp_size=1)
    audio_places = get_places(config, "audio_encoder", "cuda") or tuple(
        Place(gpus=(gpu,)) for gpu in config.audio_encoder.gpus or (0,)
    )
    image_replicas = _build_encoder_replicas("image_encoder", images, image_places, config)
    audio_replicas = _build_encoder_replicas("audio_encoder", audio, audio_places, config)
    return {"image": image_replicas, "video": image_replicas, "audio": audio_replicas}


def get_image_encoder_gpus(config: Config) -> list[tuple[int, ...]]:
    """Return the GPUs of each replica of the image encoder, one for each rank.

    Raises:
        ConfigError: The number of GPUs is not a multiple of `tp_size`, or a replica names one
            twice.
    """
    tp_size = config.image_encoder.tp_size
    gpus = config.image_encoder.gpus or tuple(range(tp_size))
    groups = [gpus[first : first + tp_size] for first in range(0, len(gpus), tp_size)]
    if any(len(set(group)) != tp_size for group in groups):
        raise make_option_error(
            "image_encoder.gpus",
            f"image_encoder.gpus must name {tp_size} different GPUs for each replica, "
            f"one for each rank, not {', '.join(map(str, gpus))}",
        )
    return groups


def build_encoder_settings(config: Config, checkpoint: Path) -> EncoderSettings:
    """Return the settings that both encoders share."""
    device = resolve_device(config.device)
    return EncoderSettings(
        checkpoint=checkpoint,
        device=device,
        dtype=resolve_dtype(config.dtype, device),
        tp_size=config.image_encoder.tp_size,
        max_patches=config.image_encoder.max_patches
        or (CPU_PATCHES if device == "cpu" else GPU_PATCHES),
        max_audio_seconds=config.audio_encoder.max_seconds
        or (CPU_AUDIO_SECONDS if device == "cpu" else GPU_AUDIO_SECONDS),
        graphs=config.image_encoder.graphs and device == "cuda",
        threads=get_num_threads() if device == "cpu" else None,
    )


def _build_encoder_replicas(
    name: str, shared: EncoderSettings, places: Sequence[Place], config: Config
) -> tuple[ProcessSpec, ...]:
    """Return the replicas of an encoder; each sees only its own GPUs."""
    options = config.image_encoder if shared.images else config.audio_encoder
    all_settings = [replace(shared, gpus=place.gpus) for place in places]
    mask = os.environ.get(VISIBLE_DEVICES_VARIABLE)
    spec = ProcessSpec(
        name,
        "sglang_omni.engines.encoder.worker:open_worker",
        shared,
        **get_deadlines(options),
        unready_after_s=_get_encoder_unready_after_s(shared, options),
        output=build_output_rules(config),
    )
    environments = [
        encoder_environment(settings, get_num_threads(), None if place.node else mask)
        for settings, place in zip(all_settings, places, strict=True)
    ]
    return spread(spec, all_settings, places, config, environments)


def _get_encoder_unready_after_s(settings: EncoderSettings, options: EngineOptions) -> float:
    """Return the step time after which the encoder counts as unready, in seconds.

    On a CPU it is half of the step deadline: on a busy CPU a forward pass may take several seconds.
    """
    if settings.device != "cpu":
        return ProcessSpec.unready_after_s
    return max(ProcessSpec.unready_after_s, options.step_deadline_s / 2)


def build_media_rules(config: Config, rules: MediaRules) -> MediaRules:
    """Return the model's `rules` within the configured sizes, on a CPU with lower maximums.

    Raises:
        ConfigError: The minimum size of images exceeds the maximum.
    """
    media, on_cpu = config.media, resolve_device(config.device) == "cpu"
    default_pixels = rules.image.max_pixels
    if on_cpu:
        default_pixels = min(CPU_IMAGE_PIXELS, default_pixels)
    max_pixels = media.image_max_pixels or default_pixels
    min_pixels = media.image_min_pixels or rules.image.min_pixels
    if min_pixels > max_pixels:
        raise make_option_error(
            "media.image_min_pixels",
            f"media.image_min_pixels must not exceed media.image_max_pixels, which is {max_pixels}",
        )
    return replace(
        rules,
        image=replace(rules.image, min_pixels=min_pixels, max_pixels=max_pixels),
        video=_build_video_rules(media, rules.video, on_cpu),
    )


def _build_video_rules(media: MediaOptions, rules: VideoRules, on_cpu: bool) -> VideoRules:
    default_frames = min(CPU_VIDEO_FRAMES, rules.frames) if on_cpu else rules.frames
    frames = media.video_max_sampled or default_frames
    fps, max_fps = media.video_fps or rules.fps, media.video_fps or rules.max_fps
    rules = replace(rules, fps=fps, max_fps=max_fps, frames=frames)
    if not on_cpu:
        return rules
    total = rules.total_pixels // CPU_VIDEO_SHARE
    max_frame_pixels = min(CPU_IMAGE_PIXELS, rules.max_frame_pixels)
    return replace(rules, total_pixels=total, max_frame_pixels=max_frame_pixels)


def build_media_decoder_settings(config: Config, rules: MediaRules) -> MediaDecoderSettings:
    """Return the settings of the media decoder processes."""
    media = config.media
    limits = MediaLimits(
        file_bytes=media.file_bytes,
        pixels=media.pixels,
        frames=media.video_frames,
        video_pixels=media.video_pixels,
        video_seconds=media.video_seconds,
        audio_seconds=media.audio_seconds,
        recording_seconds=media.recording_seconds,
        decode_seconds=media.decode_seconds,
        memory_bytes=media.memory_bytes,
    )
    return MediaDecoderSettings(limits, rules)


def build_fetch_policy(config: Config) -> FetchPolicy:
    """Return which media may be fetched, and from where."""
    return FetchPolicy(
        allowed_domains=frozenset(config.allowed_media_domain),
        allowed_local_path=config.allowed_local_media_path,
        file_bytes=config.media.file_bytes,
        seconds=config.media.fetch_seconds,
    )


def get_num_threads() -> int:
    """Return the threads of an engine on a CPU: half of the cores.

    The thinker and the talker run at the same time, an encoder mostly before them.
    """
    return max(1, len(os.sched_getaffinity(0)) // 2)
