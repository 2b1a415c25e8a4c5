"""Rules for the fields of an object that the server's own schema does not have."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Ignored:
    """A field that is accepted and has no effect.

    Attributes:
        name: Its name.
        origin: Whose field it is.
        reason: Why it has no effect.
        neutral: Values that ask for nothing, so that they are not reported.
    """

    name: str
    origin: str
    reason: str
    neutral: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Change:
    """What becomes of a mapped field.

    Attributes:
        fields: Fields of the same object to set.
        ignored: Paths below the object of what has no effect.
    """

    fields: Fields = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


Convert = Callable[[Any, Fields], Change]
"""Returns the change for a value of the field and the other fields of its object.

Raises `InvalidRequest`, naming the field as if the object were the body.
"""


@dataclass(frozen=True)
class Mapped:
    """A field that another program has, and what it means here.

    It may have the name of an own field; then only its values are converted.
    """

    name: str
    origin: str
    meaning: str
    convert: Convert


@dataclass(frozen=True)
class Refused:
    """A known field that cannot be ignored, because the answer would not be what it asks for."""

    name: str
    origin: str
    reason: str
    neutral: tuple[Any, ...] = ()


Rule = Ignored | Mapped | Refused


@dataclass(frozen=True)
class FieldRules:
    """The rules of one object.

    Attributes:
        own: Names of the server's own fields.
        rules: Rules for other names, or for values of own ones. Applied in this order.
        nested: Rules of the objects in a field, or in a list in a field.
        rewrite: Converts an object before its rules apply.
        lists: Names of fields that a form may have several times.
        objects: Names of fields whose own fields a form has as `name[field]`.
    """

    own: frozenset[str]
    rules: Sequence[Rule] = ()
    nested: Mapping[str, "FieldRules"] = field(default_factory=dict)
    rewrite: Callable[[Fields], Fields] | None = None
    lists: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names that have a rule."""
        return frozenset(rule.name for rule in self.rules)

    @cached_property
    def known(self) -> frozenset[str]:
        """Return all known names."""
        return self.own | self.names


def list_own_names(*models: type[BaseModel]) -> frozenset[str]:
    """Return the names that clients write for the fields of `models`."""
    return frozenset(
        about.alias or name for model in models for name, about in model.model_fields.items()
    )
