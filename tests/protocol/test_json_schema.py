"""Schemas that are refused by a look, and those that are none of its business."""

from typing import Any

import pytest

from sglang_omni.protocol.json_schema import MAX_SCHEMAS, find_problem

GOOD: list[dict[str, Any]] = [
    {},
    {"type": "object", "properties": {"next": {"$ref": "#"}}},
    {"type": "array", "items": {"$ref": "#"}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
    {"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "string"}}},
    {"$defs": {"a%": {}}, "$ref": "#/$defs/a%25"},
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}]},
    {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}},
    {"prefixItems": [{"$ref": "#/prefixItems/1"}, {"type": "null"}]},
    {"properties": {"$ref": {"type": "string"}, "minItems": {"type": "integer"}}},
    {"enum": [{"$ref": "#/nowhere"}], "const": {"$ref": 5}},
    {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991},
    {"type": "string", "maxLength": 2147483647},
    {"type": "array", "maxItems": 10_000},
    {"additionalProperties": False, "items": True},
]

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"$ref": "#"}, "#", "refers to itself"),
    (
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        },
        "#/$defs/",
        "refers to itself",
    ),
    ({"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}}, "#/properties/a", "refers"),
    ({"anyOf": [{"type": "string"}, {"$ref": "#"}]}, "#", "refers to itself"),
    ({"items": {"not": {"$ref": "#/items"}}}, "#/items", "refers to itself"),
    ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "#/properties/a", "cannot be resolved"),
    ({"$ref": "http://example.com/schema"}, "#", "cannot be resolved"),
    ({"$ref": "#here"}, "#", "cannot be resolved"),
    ({"$ref": 5}, "#", "cannot be resolved"),
    ({"$ref": "#/prefixItems/7", "prefixItems": [{}]}, "#", "cannot be resolved"),
    ({"type": "array", "minItems": 10**9}, "#", "minItems"),
    ({"items": {"maxItems": 10_001}}, "#/items", "maxItems"),
    ({"patternProperties": {"a": {"minProperties": 1e300}}}, "#/patternProperties/a", "minProp"),
    ({"maximum": 10**31}, "#", "maximum"),
    ({"exclusiveMinimum": -(10**30)}, "#", "exclusiveMinimum"),
    ({"$ref": "#/elsewhere", "elsewhere": {"maxItems": 10**9}}, "#/elsewhere", "maxItems"),
]


@pytest.mark.parametrize("schema", GOOD, ids=str)
def test_ordinary_schemas_have_no_problem(schema: dict[str, Any]) -> None:
    assert find_problem(schema) is None


@pytest.mark.parametrize(("schema", "place", "reason"), BAD, ids=str)
def test_a_problem_is_told_by_its_place(schema: dict[str, Any], place: str, reason: str) -> None:
    problem = find_problem(schema)
    assert problem is not None
    assert problem.startswith(place)
    assert reason in problem


def test_a_schema_has_only_so_many_within_it() -> None:
    many: dict[str, Any] = {"properties": {str(number): {} for number in range(MAX_SCHEMAS)}}
    assert find_problem(many) == f"has more than {MAX_SCHEMAS} schemas within it"
    del many["properties"]["0"]
    assert find_problem(many) is None


def test_a_deep_schema_is_walked_without_recursion() -> None:
    schema: dict[str, Any] = {"$ref": "#"}
    for _ in range(5000):
        schema = {"anyOf": [schema]}
    problem = find_problem(schema)
    assert problem is not None
    assert "refers to itself" in problem
