"""Conversions of fields that several bodies share."""

import re
from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.compat.field_rules import Change, Convert, Fields, Ignored
from sglang_omni.protocol.errors import InvalidRequest

# Names that may stand in a response header. Others are reported as their parent.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}\Z")


def make_error(name: str, reason: str) -> InvalidRequest:
    """Return the error for the field `name`."""
    return InvalidRequest(f"{name}: {reason}", param=name)


def rename(name: str, own_name: str) -> Convert:
    """Return the conversion of the field `name` to the field `own_name`, which comes first."""

    def convert(value: Any, fields: Fields) -> Change:
        if fields.get(own_name) is None:
            return Change({own_name: value})
        return Change(ignored=() if fields[own_name] == value else (name,))

    return convert


def set_default(fields: Fields, path: tuple[str, ...], value: Any) -> Fields:
    """Return the fields to set so that `path` is `value`, unless it is given already."""
    name, *rest = path
    current = fields.get(name)
    if not rest:
        return {name: value} if current is None else {}
    inner = {} if current is None else current
    # Something else than an object: validation reports it.
    if not isinstance(inner, Mapping):
        return {}
    return {name: {**inner, **set_default(inner, tuple(rest), value)}}


def merge_object(name: str) -> Convert:
    """Return the conversion of an object whose fields belong to the object around it."""

    def convert(value: Any, fields: Fields) -> Change:
        if not isinstance(value, Mapping):
            raise make_error(name, "must be a JSON object")
        return Change({key: item for key, item in value.items() if fields.get(key) is None})

    return convert


def drop_flag(name: str) -> Convert:
    """Return the conversion of a flag that the server does as asked anyway."""

    def convert(value: Any, fields: Fields) -> Change:
        if not isinstance(value, bool):
            raise make_error(name, "must be true or false")
        return Change()

    return convert


def convert_languages(value: Any, fields: Fields) -> Change:
    """Convert the languages that a recording may have: one is its language, several are a hint."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise make_error("languages", "must be a list of languages")
    if len(value) != 1:
        return Change(ignored=("languages",) if value else ())
    return rename("languages", "language")(value[0], fields)


def convert_priority(value: Any, fields: Fields) -> Change:
    """Convert vLLM's priority, where a smaller number is served earlier."""
    if isinstance(value, bool) or not isinstance(value, int):
        return Change({"priority": value})
    return Change({"priority": "normal" if value == 0 else "high" if value < 0 else "low"})


def join_names(parent: str, names: Mapping[str, Any] | list[str]) -> tuple[str, ...]:
    """Return the paths of fields below `parent` that have no effect."""
    paths = (f"{parent}.{name}" if _PLAIN_NAME.match(name) else parent for name in names)
    return tuple(dict.fromkeys(paths))


def ignore(origin: str, reason: str, *names: str, **neutral: Any) -> tuple[Ignored, ...]:
    """Return the rules for fields that are ignored for the same reason.

    Args:
        origin: Whose fields they are.
        reason: Why they have no effect.
        names: Their names.
        neutral: Further names, each with the value that asks for nothing.
    """
    plain = tuple(Ignored(name, origin, reason) for name in names)
    return plain + tuple(Ignored(name, origin, reason, (value,)) for name, value in neutral.items())
