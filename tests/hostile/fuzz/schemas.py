"""Target: JSON schemas of answers and of functions.

They go through the check of their structure and the process that compiles them.
"""

import json
import random
from typing import Any

import httpx

from tests.entrypoints.http.fake import Served
from tests.hostile.clients import CHAT, CHATS
from tests.hostile.fuzz.case import Case, Finding
from tests.hostile.fuzz.mutate import ODD_VALUES, mutate_bytes, mutate_json

TARGET = "schemas"
# One may take three seconds of a core, and they are compiled one after the other.
WAIT_S = 60.0
ALLOWED = frozenset({200, 400, 413, 429, 503})
KEYWORDS = (
    *(
        "type",
        "enum",
        "const",
        "properties",
        "patternProperties",
        "additionalProperties",
        "required",
    ),
    *("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "minLength"),
    *("maxLength", "pattern", "format", "minimum", "maximum", "multipleOf", "exclusiveMinimum"),
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$defs", "definitions"),
    *(
        "dependentSchemas",
        "propertyNames",
        "unevaluatedProperties",
        "$anchor",
        "$dynamicRef",
        "$id",
    ),
)
PATTERNS = (
    *(
        "(a+)+$",
        "a{1000}{1000}",
        "[",
        "(?=x)",
        "\\p{L}+",
        "^(a|b)*$",
        "(" * 500,
        "\\u{110000}",
        "a{9999}",
    ),
    *("(?i)x", "\\1(a)", ".*.*.*.*x", "[\\s\\S]{0,50000}", "\x00"),
)
REFERENCES = (
    "#",
    "#/$defs/a",
    "#/definitions/b",
    "#/$defs/a/properties/a",
    "http://x/y",
    "#/%",
    "",
)
FORMATS = ("date-time", "email", "uuid", "ipv6", "regex", "nonsense", "uri")
TYPES: tuple[Any, ...] = (
    "object",
    "array",
    "string",
    "number",
    "integer",
    "null",
    "boolean",
    "x",
    ["string", "null"],
)


def make(source: random.Random) -> Case:
    """A chat that holds its answer, or a function's arguments, to some schema."""
    schema: Any = _schema(source, source.randint(0, 4))
    if source.random() < 0.3:
        schema = mutate_json(source, schema)
    body = {**CHAT, **_use(source, schema)}
    data = json.dumps(body).encode()
    if source.random() < 0.05:
        data = mutate_bytes(source, data)
    return Case(TARGET, "chat", data)


def _use(source: random.Random, schema: Any) -> dict[str, Any]:
    if source.random() < 0.6:
        named = {"name": "a", "schema": schema, "strict": source.choice((True, False))}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    function = {"name": "f", "parameters": schema, "strict": source.choice((True, False))}
    tools = [{"type": "function", "function": function}] * source.choice((1, 1, 2))
    return {"tools": tools, "tool_choice": source.choice(("auto", "required"))}


def _schema(source: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    if source.random() < 0.7:
        schema["type"] = source.choice(TYPES)
    for keyword in source.sample(KEYWORDS, source.randint(1, 4)):
        schema[keyword] = _value(source, keyword, depth)
    return schema


def _value(source: random.Random, keyword: str, depth: int) -> Any:
    if source.random() < 0.08:
        return source.choice(ODD_VALUES)

    def inner() -> dict[str, Any]:
        return _schema(source, depth - 1) if depth > 0 else {}

    match keyword:
        case "type":
            return source.choice(TYPES)
        case "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas":
            names = source.sample(("a", "b", "^a", "", "\n", "é"), source.randint(0, 3))
            return {name: inner() for name in names}
        case "allOf" | "anyOf" | "oneOf" | "prefixItems":
            return [inner() for _ in range(source.choice((0, 1, 2, 3, 30)))]
        case "enum" | "required":
            return source.choices(("a", "b", 1, None, "x" * 1000), k=source.choice((0, 1, 3, 500)))
        case "pattern":
            return source.choice(PATTERNS)
        case "format":
            return source.choice(FORMATS)
        case "$ref" | "$dynamicRef":
            return source.choice(REFERENCES)
        case "$id" | "$anchor" | "const":
            return source.choice(("a", "", "http://x/", 1))
        case "uniqueItems":
            return source.choice((True, False))
        case _ if keyword.startswith(("min", "max", "multiple", "exclusive")):
            return source.choice((0, 1, 3, 999, 10_000, 10_001, -1, 2**31, 2**63, 0.1, 1e-9, 1e30))
    return source.choice((True, False, inner(), inner()))


def play(served: Served, case: Case) -> None:
    """Ask. The answer must come, and be one of those that name what is wrong."""
    headers = {"Content-Type": "application/json"}
    with httpx.Client(timeout=WAIT_S) as client:
        answer = client.post(f"{served.url}{CHATS}", content=case.data, headers=headers)
    if answer.status_code not in ALLOWED:
        raise Finding(f"answered with {answer.status_code}: {answer.text[:200]}")
