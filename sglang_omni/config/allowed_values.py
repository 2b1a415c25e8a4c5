"""Describes in words which values an option allows."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

# Singular and plural.
NAMES = {
    bool: ("true or false", "true or false"),
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    str: ("text", "texts"),
    Path: ("a path", "paths"),
}


def describe_values(option_type: Any, constraints: Iterable[Any] = (), plural: bool = False) -> str:
    """Return the values of a type in words, such as "an integer from 0 to 65535".

    Args:
        option_type: The type. That it may also be None is not said.
        constraints: Constraints besides those in the type, as pydantic's fields have them.
        plural: Whether the words are about several values: "integers from 0 to 65535".
    """
    origin, arguments = get_origin(option_type), get_args(option_type)
    if origin is Annotated:
        return describe_values(arguments[0], (*constraints, *arguments[1:]), plural)
    if NoneType in arguments:
        (option_type,) = (one for one in arguments if one is not NoneType)
        return describe_values(option_type, constraints, plural)
    if origin is Literal:
        return " or ".join(filter(None, (", ".join(arguments[:-1]), arguments[-1])))
    if origin is tuple:
        return f"a list of {describe_values(arguments[0], plural=True)}"
    if origin is Mapping:
        return "a mapping of names to values"
    return NAMES[option_type][plural] + _describe_range(list(_flatten(constraints)))


def _flatten(constraints: Iterable[Any]) -> Iterator[Any]:
    """Yield constraints, also those within pydantic's `Field(...)`."""
    for constraint in constraints:
        yield constraint
        yield from _flatten(getattr(constraint, "metadata", ()))


def _describe_range(constraints: list[Any]) -> str:
    lowest = next((one.ge for one in constraints if hasattr(one, "ge")), None)
    highest = next((one.le for one in constraints if hasattr(one, "le")), None)
    if lowest is not None and highest is not None:
        return f" from {lowest} to {highest}"
    if lowest is not None:
        return f" of at least {lowest}"
    return "" if highest is None else f" of at most {highest}"
