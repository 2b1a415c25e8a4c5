"""Static checks of JSON schemas, without compiling them.

A reference that refers to itself describes nothing, and a count of millions is unrolled into as
many rules. Either would end SGLang's scheduler, which serves all requests.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

# More items than an answer has tokens.
MAX_COUNT = 10_000
# Nested schemas: several times what clients send, and checked in milliseconds.
MAX_SCHEMAS = 10_000
# The grammar backend reads integers as 64 bits.
MAX_BOUND = 2**63
COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains")
NUMBER_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
# Keywords with subschemas: one, a list, or a mapping. Those of the first two lines apply to the
# same value as their parent schema, the others to a part of it.
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
    """Return the first problem of a schema and its path, or None if there is none."""
    seen: dict[int, tuple[str, Schema]] = {}
    same_value: dict[int, list[int]] = {}
    waiting: list[tuple[str, Any]] = [("#", root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        if len(seen) == MAX_SCHEMAS:
            return f"has more than {MAX_SCHEMAS} schemas within it"
        seen[id(schema)] = path, schema
        if (reason := _find_number_problem(schema)) is not None:
            return _format_problem(path, reason)
        subschemas = list(_iter_same_value(schema, path))
        if "$ref" in schema:
            target = _resolve(root, schema["$ref"])
            if target is None:
                return _format_problem(
                    path, "$ref: cannot be resolved; refer to a place in this schema"
                )
            subschemas.append(target)
        same_value[id(schema)] = [id(inner) for _, inner in subschemas]
        waiting += [*subschemas, *_iter_parts(schema, path)]
    cycle = _find_cycle(same_value)
    if cycle is None:
        return None
    return _format_problem(seen[cycle][0], "$ref: refers to itself")


def _format_problem(path: str, reason: str) -> str:
    return f"{path[:_SHOWN_CHARACTERS]}: {reason}"


def _find_number_problem(schema: Schema) -> str | None:
    """Return the first problem with the numbers of one schema, or None."""
    for names, maximum in ((COUNTS, MAX_COUNT), (NUMBER_BOUNDS, MAX_BOUND)):
        for name in names:
            value = schema.get(name)
            if isinstance(value, int | float) and abs(value) > maximum:
                return f"{name}: must be at most {maximum}"
    return None


def _iter_same_value(schema: Schema, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the subschemas that apply to the same value, with their paths."""
    for name in _SAME_VALUE:
        if name in schema:
            yield f"{path}/{name}", schema[name]
    for name in _SAME_VALUE_LISTS:
        yield from _iter_list(schema.get(name), f"{path}/{name}")


def _iter_parts(schema: Schema, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the subschemas for parts of the value, and the definitions, with their paths."""
    for name in _PARTS:
        if name in schema:
            yield f"{path}/{name}", schema[name]
    for name in _PART_LISTS:
        yield from _iter_list(schema.get(name), f"{path}/{name}")
    for name in _PART_MAPS:
        mapping = schema.get(name)
        if isinstance(mapping, Mapping):
            yield from ((f"{path}/{name}/{key}", inner) for key, inner in mapping.items())


def _iter_list(schemas: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(schemas, list):
        yield from ((f"{path}/{index}", inner) for index, inner in enumerate(schemas))


def _resolve(root: Schema, reference: Any) -> tuple[str, Any] | None:
    """Return the path and target of a JSON pointer in the document, or None if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    pointer, target = unquote(reference[1:]), root
    if pointer and not pointer.startswith("/"):
        return None
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and step in target:
            target = target[step]
        elif isinstance(target, list) and step.isdecimal() and int(step) < len(target):
            target = target[int(step)]
        else:
            return None
    return reference, target


def _find_cycle(graph: Mapping[int, list[int]]) -> int | None:
    """Return a node of a cycle in the graph, or None if there is none."""
    done: set[int] = set()
    for start in graph:
        if start in done:
            continue
        # The nodes on the path from `start`, each with the edges not yet followed.
        path = {start: iter(graph[start])}
        while path:
            node, edges = next(reversed(path.items()))
            successor = next((edge for edge in edges if edge in graph and edge not in done), None)
            if successor in path:
                return successor
            if successor is None:
                done.add(node)
                del path[node]
            else:
                path[successor] = iter(graph[successor])
    return None
