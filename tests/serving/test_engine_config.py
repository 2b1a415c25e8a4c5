"""Which engines a configuration asks for, and with what settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.models.ming.media_rules import PATCH, RULES
from sglang_omni.models.plain import PLAIN_MEDIA_FORMAT
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.errors import ConfigError, InvalidRequest
from sglang_omni.serving.engine_config import (
    build_encoder_settings,
    build_encoder_specs,
    build_fetch_policy,
    build_media_decoder_settings,
    build_media_rules,
    build_talker_spec,
    build_talker_specs,
)
from sglang_omni.serving.media_engines import MediaEngines
from sglang_omni.serving.thinker_config import build_thinker_spec
from tests.testing.golden import TINY


def config(**values: object) -> Config:
    return load_config(None, {name.replace("__", "."): value for name, value in values.items()})


def test_one_process_encodes_everything_on_a_cpu() -> None:
    specs = build_encoder_specs(config(device="cpu"), TINY)
    assert specs.keys() == {"image", "video", "audio"}
    (spec,) = {spec.name: spec for (spec,) in specs.values()}.values()
    assert spec.settings.images
    assert spec.settings.audio
    assert not spec.settings.graphs


def test_pictures_and_clips_have_an_engine_each_on_gpus() -> None:
    asked = config(device="cuda", image_encoder__tp_size=2, audio_encoder__gpus="3")
    specs = build_encoder_specs(asked, TINY)
    ((pictures,), (clips,)) = specs["image"], specs["audio"]
    images, audio = pictures.settings, clips.settings
    assert specs["video"] is specs["image"]
    assert (images.images, images.audio, images.tp_size, images.gpus) == (True, False, 2, (0, 1))
    assert (audio.images, audio.audio, audio.tp_size, audio.gpus) == (False, True, 1, (3,))
    assert images.dtype == "bfloat16"


@pytest.mark.parametrize(
    "other", [{"device": "cpu"}, {"dtype": "float32"}, {"talker__graphs": False}]
)
def test_eight_bits_need_graphs_in_bfloat16_on_a_card(other: dict[str, object]) -> None:
    asked = {"device": "cuda", "talker__fp8": True}
    assert build_talker_spec(config(**asked), TINY).settings.fp8
    with pytest.raises(ConfigError, match=r"talker\.fp8"):
        build_talker_spec(config(**asked | other), TINY)


def test_the_thinker_has_a_rank_for_each_card_that_is_named() -> None:
    assert (
        build_thinker_spec(config(device="cuda", thinker__gpus="2,3"), TINY).settings.tp_size == 2
    )
    assert build_thinker_spec(config(device="cuda"), TINY).settings.tp_size == 1
    with pytest.raises(ConfigError, match=r"thinker\.gpus"):
        build_thinker_spec(config(device="cuda", thinker__gpus="2,3", thinker__tp_size=4), TINY)


def test_there_is_a_replica_for_every_card_that_is_named() -> None:
    asked = config(
        device="cuda",
        image_encoder__tp_size=2,
        image_encoder__gpus="0,1,2,3",
        audio_encoder__gpus="3,4",
        talker__gpus="1,5,5",
    )
    specs = build_encoder_specs(asked, TINY) | {"talker": build_talker_specs(asked, TINY)}
    assert [spec.settings.gpus for spec in specs["image"]] == [(0, 1), (2, 3)]
    assert [spec.settings.gpus for spec in specs["audio"]] == [(3,), (4,)]
    assert [spec.env["CUDA_VISIBLE_DEVICES"] for spec in specs["image"]] == ["0,1", "2,3"]
    assert [spec.env["CUDA_VISIBLE_DEVICES"] for spec in specs["audio"]] == ["3", "4"]
    assert [spec.settings.device for spec in specs["talker"]] == ["cuda:1", "cuda:5", "cuda:5"]
    assert [spec.name for spec in specs["talker"]] == ["talker", "talker-1", "talker-2"]
    assert [spec.replica for spec in specs["talker"]] == [0, 1, 2]
    assert {spec.kind for spec in specs["talker"]} == {"talker"}
    assert [spec.name for spec in specs["image"]] == ["image_encoder", "image_encoder-1"]


def test_a_cpu_has_as_many_talkers_as_asked_for_and_a_card_as_many_as_it_is_named() -> None:
    replicas = build_talker_specs(config(device="cpu", talker__replicas=3), TINY)
    assert [spec.env.keys() for spec in replicas] == 3 * [{"OMP_NUM_THREADS"}]
    (gpu,) = build_talker_specs(config(device="cuda"), TINY)
    assert gpu.env == {"CUBLAS_WORKSPACE_CONFIG": ":0:0", "CUBLASLT_WORKSPACE_SIZE": "0"}
    assert len(build_talker_specs(config(device="cpu", talker__gpus="1,2"), TINY)) == 1
    with pytest.raises(ConfigError, match=r"talker\.gpus"):
        build_talker_specs(config(device="cuda", talker__replicas=2), TINY)


@pytest.mark.parametrize("gpus", ["0", "1,1", "0,1,2"])
def test_each_rank_needs_a_card_of_its_own(gpus: str) -> None:
    asked = config(device="cuda", image_encoder__tp_size=2, image_encoder__gpus=gpus)
    with pytest.raises(ConfigError, match=r"image_encoder\.gpus"):
        build_encoder_specs(asked, TINY)


def test_three_ranks_are_refused() -> None:
    with pytest.raises(ConfigError, match="1, 2 or 4 ranks"):
        build_encoder_specs(config(device="cpu", image_encoder__tp_size=3), TINY)


async def test_a_text_only_server_has_no_encoder_and_refuses_media() -> None:
    media = MediaEngines(config(device="cpu", text_only="true"), TINY)
    assert set(media.decoders.processes) == {"media_decoder-0", "media_decoder-1"}
    await media.start()
    with pytest.raises(InvalidRequest, match="text only") as error:
        await media.preprocessor.open(MediaPart("image", ("data:,",), "images.0"))
    assert error.value.param == "images.0"
    await media.stop()


def test_sizes_and_limits_reach_the_decoders() -> None:
    asked = config(
        media__image_max_pixels=65_536, media__video_fps=1, media__pixels=1_000, media__file_bytes=9
    )
    settings = build_media_decoder_settings(asked, build_media_rules(asked, RULES))
    assert settings.rules == build_media_rules(asked, RULES)
    video = settings.rules.video
    assert (settings.rules.image.max_pixels, video.fps, video.max_fps) == (65_536, 1.0, 1.0)
    assert (settings.limits.pixels, settings.limits.file_bytes) == (1_000, 9)


def test_sizes_are_the_models_on_a_card_and_what_it_encodes_in_seconds_on_a_cpu() -> None:
    assert build_media_rules(config(device="cuda"), RULES) == RULES
    rules = build_media_rules(config(device="cpu"), RULES)
    assert rules.image == replace(RULES.image, max_pixels=1_048_576)
    smaller = {"frames": 24, "total_pixels": 1_572_864, "max_frame_pixels": 1_048_576}
    assert rules.video == replace(RULES.video, **smaller)
    asked = {"media__image_max_pixels": 4_000_000, "media__video_max_sampled": 64}
    own = build_media_rules(config(device="cpu", **asked), RULES)
    assert (own.image.max_pixels, own.video.frames) == (4_000_000, 64)


def test_a_model_keeps_its_own_maximums_on_a_cpu_where_they_are_lower() -> None:
    rules = PLAIN_MEDIA_FORMAT.rules
    small = replace(
        rules,
        image=replace(rules.image, max_pixels=65_536),
        video=replace(rules.video, frames=16, max_frame_pixels=65_536),
    )
    on_cpu = build_media_rules(config(device="cpu"), small)
    assert on_cpu.image == small.image
    assert (on_cpu.video.frames, on_cpu.video.max_frame_pixels) == (16, 65_536)


def test_an_encoders_pass_is_short_on_a_cpu() -> None:
    on_cpu = build_encoder_settings(config(device="cpu"), TINY)
    assert (on_cpu.max_patches, on_cpu.max_audio_seconds) == (4_096, 120)
    on_gpu = build_encoder_settings(config(device="cuda"), TINY)
    assert (on_gpu.max_patches, on_gpu.max_audio_seconds) == (32_768, 600)
    own = config(device="cpu", image_encoder__max_patches=9, audio_encoder__max_seconds=7)
    asked = build_encoder_settings(own, TINY)
    assert (asked.max_patches, asked.max_audio_seconds) == (9, 7)
    # A frame of a video, and an image, are never more than one pass.
    assert (
        build_media_rules(config(device="cpu"), RULES).image.max_pixels
        == on_cpu.max_patches * PATCH**2
    )


def test_a_slow_pass_on_a_cpu_does_not_make_its_encoder_unready() -> None:
    def unready_after(**values: object) -> float:
        return build_encoder_specs(config(**values), TINY)["image"][0].unready_after_s

    assert unready_after(device="cuda") == ProcessSpec.unready_after_s
    assert unready_after(device="cpu") == 6
    assert unready_after(device="cpu", image_encoder__step_deadline_s=60) == 30


def test_contradicting_sizes_are_refused() -> None:
    with pytest.raises(ConfigError, match="image_min_pixels"):
        build_media_rules(
            config(media__image_min_pixels=10_000, media__image_max_pixels=5_000), RULES
        )


def test_nothing_of_this_machine_is_read_unless_allowed() -> None:
    assert build_fetch_policy(config()).allowed_local_path is None
    assert build_fetch_policy(config()).private_hosts == frozenset()
    allowed = build_fetch_policy(
        config(allowed_local_media_path="/media", allowed_media_domain="a.b")
    )
    assert allowed.allowed_local_path == Path("/media")
    assert allowed.allowed_domains == {"a.b"}
