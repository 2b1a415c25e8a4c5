"""Recordings of a voice in the peers' forms."""

from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.compat.conversions import join_names, make_error
from sglang_omni.protocol.compat.field_rules import Change, Fields

_SOURCES = ("ref_audio", "audio_path", "audio", "data")
_TEXTS = ("text", "ref_text")


def convert_references(value: Any, fields: Fields) -> Change:
    """Convert sglang-omni's list of recordings. It may have one."""
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise make_error("references", "must be a list of JSON objects")
    if not value or fields.get("ref_audio") is not None:
        return Change(ignored=("references",) if value else ())
    if len(value) > 1:
        raise make_error("references", "this server clones a voice of one recording")
    return _convert_reference(value[0], fields)


def _convert_reference(reference: Mapping[str, Any], fields: Fields) -> Change:
    given = {name: item for name, item in reference.items() if item is not None}
    source = next((name for name in _SOURCES if name in given), None)
    if source is None:
        raise make_error("references", "must have an audio_path, a ref_audio or an audio")
    text = next((given[name] for name in _TEXTS if name in given), None)
    used = {source, "media_type", *_TEXTS}
    rest = [name for name in given if name not in used]
    recording = {"ref_audio": _to_source(given[source], given.get("media_type"), source)}
    if text is not None and fields.get("ref_text") is None:
        recording["ref_text"] = text
    return Change(recording, join_names("references", rest))


def _to_source(value: Any, media_type: Any, name: str) -> Any:
    """Return a URL, data URI or path. Only `data` is always base64."""
    if name != "data" or not isinstance(value, str) or value.startswith("data:"):
        return value
    kind = media_type if isinstance(media_type, str) and media_type else "audio/wav"
    return f"data:{kind};base64,{value}"


def convert_ref_audio(value: Any, fields: Fields) -> Change:
    """Convert an object with `data` and a `format`, or with a `url`, to its source."""
    if not isinstance(value, Mapping):
        return Change({"ref_audio": value})
    if isinstance(value.get("data"), str):
        kind = f"audio/{value.get('format') or 'wav'}"
        return Change({"ref_audio": _to_source(value["data"], kind, "data")})
    return Change({"ref_audio": value.get("url", value)})
