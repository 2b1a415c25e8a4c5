"""What a JSON schema must not say: found by looking at it, without compiling.

A reference that leads back to itself describes nothing, and a count of millions is unrolled into
as many rules; SGLang's scheduler, which serves everybody, would end at either.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

# More items than an answer has tokens.
MAX_COUNT = 10_000
# Schemas within one: several times what any client sends, and looked at in milliseconds.
MAX_SCHEMAS = 10_000
# What fits 64 bits, as the grammar back end reads integers.
MAX_BOUND = 2**63
COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains")
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
# Keywords that hold schemas: one, a list, or a name for each. Those of the first two lines hold for
# the same value as the schema they stand in, the others for a part of it.
_SAME_VALUE = ("not", "if", "then", "else")
_SAME_VALUE_LISTS = ("allOf", "anyOf", "oneOf")
_PARTS = (
    *("items", "additionalItems", "unevaluatedItems", "contains"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
)
_PART_LISTS = ("items", "prefixItems")
_PART_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_SHOWN_CHARACTERS = 100

Schema = Mapping[str, Any]


def find_problem(root: Schema) -> str | None:
    """Return what is wrong with a schema, and where; None if nothing is."""
    places: dict[int, tuple[str, Schema]] = {}
    same_value: dict[int, list[int]] = {}
    waiting: list[tuple[str, Any]] = [("#", root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in places:
            continue
        if len(places) == MAX_SCHEMAS:
            return f"has more than {MAX_SCHEMAS} schemas within it"
        places[id(schema)] = path, schema
        if (reason := _number_problem(schema)) is not None:
            return _at(path, reason)
        same = list(_same_value(schema, path))
        if "$ref" in schema:
            target = _resolve(root, schema["$ref"])
            if target is None:
                return _at(path, "$ref: leads nowhere; only places in the schema can be named")
            same.append(target)
        same_value[id(schema)] = [id(inner) for _, inner in same]
        waiting += [*same, *_parts(schema, path)]
    looping = _find_cycle(same_value)
    if looping is None:
        return None
    return _at(places[looping][0], "$ref: leads back to itself, with nothing in between")


def _at(path: str, reason: str) -> str:
    return f"{path[:_SHOWN_CHARACTERS]}: {reason}"


def _number_problem(schema: Schema) -> str | None:
    """What is wrong with the numbers of one schema."""
    for names, most in ((COUNTS, MAX_COUNT), (BOUNDS, MAX_BOUND)):
        for name in names:
            value = schema.get(name)
            if isinstance(value, int | float) and abs(value) > most:
                return f"{name}: must be at most {most}"
    return None


def _same_value(schema: Schema, path: str) -> Iterator[tuple[str, Any]]:
    """Schemas inside this one that hold for the same value, and their places."""
    for name in _SAME_VALUE:
        if name in schema:
            yield f"{path}/{name}", schema[name]
    for name in _SAME_VALUE_LISTS:
        yield from _listed(schema.get(name), f"{path}/{name}")


def _parts(schema: Schema, path: str) -> Iterator[tuple[str, Any]]:
    """Schemas inside this one that hold for a part of its value, or are only defined there."""
    for name in _PARTS:
        if name in schema:
            yield f"{path}/{name}", schema[name]
    for name in _PART_LISTS:
        yield from _listed(schema.get(name), f"{path}/{name}")
    for name in _PART_MAPS:
        named = schema.get(name)
        if isinstance(named, Mapping):
            yield from ((f"{path}/{name}/{key}", inner) for key, inner in named.items())


def _listed(schemas: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(schemas, list):
        yield from ((f"{path}/{index}", inner) for index, inner in enumerate(schemas))


def _resolve(root: Schema, reference: Any) -> tuple[str, Any] | None:
    """What a JSON pointer within the document names, and its place; None if there is no such."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    pointer, found = unquote(reference[1:]), root
    if pointer and not pointer.startswith("/"):
        return None
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return reference, found


def _find_cycle(graph: Mapping[int, list[int]]) -> int | None:
    """Return a node from which edges lead back to it; None if there is none."""
    done: set[int] = set()
    for start in graph:
        if start in done:
            continue
        # The nodes on the way from `start`, each with the edges not yet followed.
        way = {start: iter(graph[start])}
        while way:
            node, edges = next(reversed(way.items()))
            following = next((one for one in edges if one in graph and one not in done), None)
            if following in way:
                return following
            if following is None:
                done.add(node)
                del way[node]
            else:
                way[following] = iter(graph[following])
    return None
