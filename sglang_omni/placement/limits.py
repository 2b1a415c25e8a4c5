"""The limits that decide how much memory engines need, and smaller ones for a small GPU.

Pure functions. Only an automatic placement takes smaller limits, and only for options that are not
set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sglang_omni.config.engine_defaults import GPU_AUDIO_SECONDS, GPU_PATCHES, GPU_SLOTS
from sglang_omni.config.tree import Config

PREFILL_TOKENS = "chunked_prefill_size"
# Defaults of SGLang 0.5.15 on GPUs of 60 to 160 GB: tokens of a prefill pass with chunks and
# without, requests for which it keeps tables at least, and rows of its largest decode graph on up
# to three ranks.
SGLANG_PREFILL_TOKENS, SGLANG_UNCHUNKED_TOKENS = 8_192, 16_384
SGLANG_RUNNING_REQUESTS, SGLANG_GRAPH_ROWS = 2_048, 256

SMALLER_LIMITS: tuple[tuple[str, int], ...] = (
    # More requests than the largest decode graph has rows would not be faster.
    ("thinker.max_running_requests", SGLANG_GRAPH_ROWS),
    ("thinker.server_args.chunked_prefill_size", 4_096),
    # The longest clip that the server takes is not divided.
    ("audio_encoder.max_seconds", 300),
    ("talker.slots", 64),
    ("talker.slots", 32),
    ("thinker.server_args.chunked_prefill_size", 2_048),
)
"""Options and values, in the order in which a plan takes them: those that cost the least first."""


@dataclass(frozen=True)
class EngineLimits:
    """The limits of the engines on a GPU.

    Attributes:
        running_requests: Requests in a step of the thinker.
        prefill_tokens: Tokens in a prefill pass.
        has_prefill_graphs: Whether prefills are captured in CUDA graphs.
        image_patches: Patches in a pass of several pictures.
        image_pixels: Pixels of the largest picture; None for the model's.
        has_image_graphs: Whether the image encoder captures CUDA graphs.
        audio_seconds: Seconds in a pass, or of the longest clip.
        slots: Slots of the talker.
        slot_positions: Positions of a slot's context.
        has_fp8_talker: Whether the talker has FP8 weights too.
        drawn_images: Images in a step of the image engine.
    """

    running_requests: int = SGLANG_RUNNING_REQUESTS
    prefill_tokens: int = SGLANG_PREFILL_TOKENS
    has_prefill_graphs: bool = True
    image_patches: int = GPU_PATCHES
    image_pixels: int | None = None
    has_image_graphs: bool = True
    audio_seconds: float = GPU_AUDIO_SECONDS
    slots: int = GPU_SLOTS
    slot_positions: int = 2_048
    has_fp8_talker: bool = False
    drawn_images: int = 4


def read_limits(config: Config) -> EngineLimits:
    """Return the limits that the options and defaults of a configuration set."""
    arguments = config.thinker.server_args
    running = arguments.get("max_running_requests") or config.thinker.max_running_requests
    prefill_tokens = arguments.get(PREFILL_TOKENS) or SGLANG_PREFILL_TOKENS
    disabled = (
        arguments.get("cuda_graph_backend_prefill") == "disabled"
        or arguments.get("disable_cuda_graph")
        or arguments.get("disable_prefill_cuda_graph")
    )
    longest_pass_s = config.audio_encoder.max_seconds or GPU_AUDIO_SECONDS
    return EngineLimits(
        running_requests=running or SGLANG_RUNNING_REQUESTS,
        # A negative value means that prompts are not divided.
        prefill_tokens=prefill_tokens if prefill_tokens > 0 else SGLANG_UNCHUNKED_TOKENS,
        has_prefill_graphs=not (config.thinker.deterministic or disabled),
        image_patches=config.image_encoder.max_patches or GPU_PATCHES,
        image_pixels=config.media.image_max_pixels,
        has_image_graphs=config.image_encoder.graphs and config.image_encoder.tp_size == 1,
        audio_seconds=max(longest_pass_s, config.media.audio_seconds),
        slots=config.talker.slots or GPU_SLOTS,
        slot_positions=config.talker.context,
        has_fp8_talker=config.talker.fp8,
        drawn_images=config.image.max_batch_size,
    )


def iter_smaller_limits(config: Config) -> Iterator[tuple[Config, Mapping[str, int]]]:
    """Yield the configuration as it is, then with one smaller limit after the other.

    With each come the values, by option, that it has instead of the defaults. Options that the user
    set are kept.
    """
    taken: dict[str, int] = {}
    reduced = config
    yield reduced, {}
    for option, value in SMALLER_LIMITS:
        if _is_set(config, option):
            continue
        smaller = _set_limit(reduced, option, value)
        if read_limits(smaller) == read_limits(reduced):
            continue
        reduced, taken = smaller, taken | {option: value}
        yield reduced, taken


def _is_set(config: Config, option: str) -> bool:
    section, *path = option.split(".")
    options = getattr(config, section)
    if len(path) == 1:
        return getattr(options, path[0]) is not None
    arguments, name = path
    # SGLang's argument of the same name overrides the option of ours.
    return name in getattr(options, arguments)


def _set_limit(config: Config, option: str, value: int) -> Config:
    section, *path = option.split(".")
    options = getattr(config, section)
    if len(path) == 1:
        return replace(config, **{section: replace(options, **{path[0]: value})})
    arguments, name = path
    merged = {**getattr(options, arguments), name: value}
    return replace(config, **{section: replace(options, **{arguments: merged})})
