"""Applies the rules of fields to a body: other programs' fields become the server's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sglang_omni.protocol.compat.field_rules import (
    Change,
    FieldRules,
    Fields,
    Ignored,
    Mapped,
    Refused,
)
from sglang_omni.protocol.errors import InvalidRequest

UNSUPPORTED_CODE = "unsupported_parameter"


@dataclass(frozen=True)
class Adapted:
    """A body in the server's own fields.

    Attributes:
        fields: The body. It is not validated.
        ignored: Paths of fields that have no effect, without indices of lists.
    """

    fields: Any
    ignored: frozenset[str] = frozenset()


def adapt(rules: FieldRules, body: Any) -> Adapted:
    """Return a body in the server's own fields, ready to be validated.

    Unknown fields stay, and so does a body that is no object: validation reports them. Raises
    `InvalidRequest`, naming the field, for one that is refused or cannot be converted.
    """
    return _adapt_object(rules, body, "", "")


def _adapt_object(rules: FieldRules, value: Any, path: str, shown_path: str) -> Adapted:
    """Adapt the object at `path`; `shown_path` has no indices."""
    if not isinstance(value, Mapping):
        return Adapted(value)
    fields = value if rules.rewrite is None else rules.rewrite(value)
    ignored: frozenset[str] = frozenset()
    if not fields.keys() <= rules.own or not rules.names.isdisjoint(fields):
        fields, names = _apply_rules(rules, fields, path)
        ignored = frozenset(shown_path + name for name in names)
    for name, inner in rules.nested.items():
        if name in fields:
            adapted = _adapt_value(inner, fields[name], f"{path}{name}.", f"{shown_path}{name}.")
            fields = {**fields, name: adapted.fields}
            ignored |= adapted.ignored
    return Adapted(fields, ignored)


def _adapt_value(rules: FieldRules, value: Any, path: str, shown_path: str) -> Adapted:
    """Adapt an object, or each object of a list."""
    if not isinstance(value, list):
        return _adapt_object(rules, value, path, shown_path)
    items = [
        _adapt_object(rules, item, f"{path}{index}.", shown_path)
        for index, item in enumerate(value)
    ]
    return Adapted([item.fields for item in items], frozenset().union(*(i.ignored for i in items)))


def _apply_rules(rules: FieldRules, fields: Fields, path: str) -> tuple[Fields, list[str]]:
    """Return the fields after the rules, and the names of those without effect."""
    # A null counts as absent, except where it is a value of an own field.
    remaining = {
        name: value for name, value in fields.items() if value is not None or name in rules.own
    }
    ignored: list[str] = []
    for rule in rules.rules:
        if remaining.get(rule.name) is None:
            continue
        value = remaining.pop(rule.name)
        match rule:
            case Mapped():
                change = _convert(rule, value, remaining, path)
                remaining.update(change.fields)
                ignored += change.ignored
            case Ignored() if not _is_neutral(value, rule.neutral):
                ignored.append(rule.name)
            case Refused() if not _is_neutral(value, rule.neutral):
                raise _make_error(path + rule.name, rule.reason, UNSUPPORTED_CODE)
    return remaining, ignored


def _is_neutral(value: Any, neutral: tuple[Any, ...]) -> bool:
    # In Python, 0 == False.
    is_flag = isinstance(value, bool)
    return any(isinstance(one, bool) == is_flag and value == one for one in neutral)


def _convert(rule: Mapped, value: Any, fields: Fields, path: str) -> Change:
    try:
        return rule.convert(value, fields)
    except InvalidRequest as error:
        if path and error.param:
            raise _make_error(path + error.param, error.message.partition(": ")[2]) from None
        raise


def iterate_rules(rules: FieldRules, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the rule of each field, those of nested objects included."""
    for rule in rules.rules:
        yield path + rule.name, rule
    for name, inner in rules.nested.items():
        yield from iterate_rules(inner, f"{path}{name}.")


def _make_error(param: str, reason: str, code: str = InvalidRequest.code) -> InvalidRequest:
    error = InvalidRequest(f"{param}: {reason}", param=param)
    error.code = code
    return error
