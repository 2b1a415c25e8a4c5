"""Builds the image engine's settings from a configuration."""

from dataclasses import replace
from pathlib import Path

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.tree import Config
from sglang_omni.engines.image.contract import ImageSettings
from sglang_omni.engines.image.launch import build_environment
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.engines.runtime.shared_count import SharedCount
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.placement.place_options import Place, get_places
from sglang_omni.serving.engine_config import (
    build_output_rules,
    get_deadlines,
    get_num_threads,
    resolve_device,
    resolve_dtype,
)
from sglang_omni.serving.places import spread

FACTORY = "sglang_omni.engines.image.worker:open_worker"


def draws_images(config: Config, capabilities: Capabilities) -> bool:
    """Return whether the server has an image engine.

    Raises:
        ConfigError: Images are required, but the checkpoint draws none.
    """
    match config.image.enabled:
        case "never":
            return False
        case "auto":
            can_draw = capabilities.image_output and not config.text_only
            return can_draw and _has_place(config)
    if not capabilities.image_output:
        raise make_option_error(
            "image.enabled",
            f"image.enabled is 'always', but {capabilities.name} draws no images: the checkpoint "
            "needs the folders mlp, connector, transformer, vae and scheduler",
        )
    return True


def explain_no_images(capabilities: Capabilities, drawing_model: str | None) -> str:
    """Return why a server has no image engine, and what would draw images.

    Args:
        capabilities: What the checkpoint can do.
        drawing_model: Name of a checkpoint of its family that draws images.
    """
    if capabilities.image_output:
        return "its image engine is off; start the server with --image.enabled always"
    example = f", such as {drawing_model}" if drawing_model else ""
    return f"its checkpoint has no image model; serve one that has one{example}"


def _has_place(config: Config) -> bool:
    """Return whether the image engine runs on a CPU, or was given a GPU.

    Its weights take 16 GB, and those who place engines by hand have planned without them. The
    automatic placement gives it a GPU if one has room.
    """
    return _get_device(config) == "cpu" or bool(config.image.gpus or config.image.place)


def _get_device(config: Config) -> str:
    own = config.image.device
    return resolve_device(config.device if own == "auto" else own)


def resolve_min_replicas(config: Config) -> int | None:
    """Return how many replicas of the image engine always run, None for all.

    On a CPU there are none unless it is set: who never draws has neither the wait nor the memory.
    A GPU's memory is kept for it anyway.
    """
    if config.image.min_replicas is None and _get_device(config) == "cpu":
        return 0
    return config.image.min_replicas


def build_image_specs(
    config: Config, checkpoint: Path, waiting: SharedCount | None = None
) -> tuple[ProcessSpec, ...]:
    """Return the replicas of the image engine: one for each entry of `place` or `gpus`, or one.

    Args:
        config: The server's configuration.
        checkpoint: The model folder.
        waiting: The answers that wait for their first output. Replicas that share a device with
            the engines of answers give way to them.

    Raises:
        ConfigError: A place cannot be used.
    """
    options = config.image
    device = _get_device(config)
    settings = ImageSettings(
        checkpoint=checkpoint,
        device=device,
        dtype=_resolve_image_dtype(config, options, device),
        backend=options.backend,
        fp8=options.fp8,
        max_images=options.max_images,
        max_batch_size=options.max_batch_size,
        threads=get_num_threads() if device == "cpu" else None,
        rest=options.rest,
    )
    deadlines = get_deadlines(options)
    spec = ProcessSpec(
        "image",
        FACTORY,
        settings,
        build_environment(device, get_num_threads()),
        **deadlines,
        # A step of several large images takes seconds, and so does the start of an edit.
        unready_after_s=max(ProcessSpec.unready_after_s, deadlines["step_deadline_s"] / 2),
        output=build_output_rules(config),
    )
    places = get_places(config, "image", device) or (
        (Place(),) if device == "cpu" else tuple(Place(gpus=(gpu,)) for gpu in options.gpus or (0,))
    )
    all_settings = [
        replace(
            settings,
            device=place.device,
            waiting=waiting if _answers_share_device(config, device, place) else None,
        )
        for place in places
    ]
    return spread(spec, all_settings, places, config)


def _answers_share_device(config: Config, device: str, place: Place) -> bool:
    """Return whether the thinker or a talker computes where this replica does."""
    if place.node or resolve_device(config.device) != device:
        return False
    if device == "cpu":
        return True
    return not (_thinker_gpus(config) | _talker_gpus(config)).isdisjoint(place.gpus)


def _thinker_gpus(config: Config) -> set[int]:
    """Return the thinker's GPUs on this machine."""
    options = config.thinker
    return set(options.gpus or range((options.tp_size or 1) // options.nodes))


def _talker_gpus(config: Config) -> set[int]:
    """Return the talkers' GPUs on this machine."""
    if places := get_places(config, "talker", "cuda"):
        return {gpu for place in places if not place.node for gpu in place.gpus}
    return set(config.talker.gpus or (0,))


def _resolve_image_dtype(config: Config, options: ImageOptions, device: str) -> str:
    if options.dtype != "auto":
        return options.dtype
    return resolve_dtype(config.dtype, device)
