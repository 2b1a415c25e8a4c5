"""Options of videos in the forms of vLLM, vllm-omni and Qwen's examples."""

from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.compat.conversions import ignore, join_names, make_error
from sglang_omni.protocol.compat.field_rules import Change, Convert, Fields, Mapped, Rule
from sglang_omni.protocol.compat.reasons import FIXED_SIZES, GATEWAYS, VLLM, VLLM_OMNI

_SOUND = "use_audio_in_video"
_RATE_NAMES = {"fps": "video_fps"}
_COUNT_NAMES = {"num_frames": "video_max_frames", "max_frames": "video_max_frames"}
_NAMES = {**_RATE_NAMES, **_COUNT_NAMES}
# In vLLM, all frames.
_NO_LIMIT = -1


def convert_processor_options(value: Any, fields: Fields) -> Change:
    """Convert `mm_processor_kwargs`: what it says of videos is known, the rest ignored."""
    given = _read_object("mm_processor_kwargs", value)
    known = {_SOUND: given.pop(_SOUND)} if _SOUND in given else {}
    return _take(fields, "mm_processor_kwargs", given, known)


def convert_reading_options(value: Any, fields: Fields) -> Change:
    """Convert `media_io_kwargs`: options of `video` are known, others ignored."""
    given = _read_object("media_io_kwargs", value)
    video = _read_object("media_io_kwargs.video", given.pop("video", None) or {})
    change = _take(fields, "media_io_kwargs.video", video, {})
    return Change(change.fields, (*change.ignored, *join_names("media_io_kwargs", given)))


def _read_object(name: str, value: Any) -> dict[str, Any]:
    """Return the fields that are not null. Raises `InvalidRequest` for something else."""
    if not isinstance(value, Mapping):
        raise make_error(name, "must be a JSON object")
    return {key: item for key, item in value.items() if item is not None}


def _take(
    fields: Fields, parent: str, given: Mapping[str, Any], known: Mapping[str, Any]
) -> Change:
    """Take options of sampling and `known` fields, unless the chat's own fields set them."""
    ignored = [name for name in given if name not in _NAMES]
    taken = dict(known)
    for name, own_name in _NAMES.items():
        value = given.get(name)
        if value is None or (own_name in _COUNT_NAMES.values() and value == _NO_LIMIT):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise make_error(f"{parent}.{name}", "must be a number")
        taken.setdefault(own_name, value)
    own = {name: value for name, value in taken.items() if fields.get(name) is None}
    return Change(own, join_names(parent, ignored))


def _convert_part_option(name: str, own_name: str) -> Convert:
    """Return the conversion of an option beside the source of a video, as Qwen's examples have."""

    def convert(value: Any, fields: Fields) -> Change:
        source = fields.get("video_url")
        if isinstance(source, str):
            source = {"url": source}
        if isinstance(source, list):
            source = {"frames": source}
        if not isinstance(source, Mapping):
            return Change(ignored=(name,))
        return Change({"video_url": {own_name: value, **source}})

    return convert


CHAT_VIDEO_RULES = (
    Mapped(
        "mm_processor_kwargs",
        VLLM_OMNI,
        "`use_audio_in_video`, `video_fps` from `fps`, `video_max_frames` from `num_frames`",
        convert_processor_options,
    ),
    Mapped(
        "media_io_kwargs",
        VLLM,
        "`video_fps` and `video_max_frames` from `video.fps` and `video.num_frames`",
        convert_reading_options,
    ),
)
PART_VIDEO_RULES: tuple[Rule, ...] = (
    Mapped("fps", GATEWAYS, "`video_url.fps`", _convert_part_option("fps", "fps")),
    *(
        Mapped(name, GATEWAYS, "`video_url.max_frames`", _convert_part_option(name, "max_frames"))
        for name in ("max_frames", "num_frames", "nframes")
    ),
    *ignore(GATEWAYS, FIXED_SIZES, "min_pixels", "max_pixels", "total_pixels"),
)
