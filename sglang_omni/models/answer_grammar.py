r"""The grammar of an answer with tool calls or a JSON schema, in llguidance's Lark syntax.

A call has the form of `tool_calls.py`: between two special tokens, the name of a function and a
JSON object of arguments. If the call is forced or the function is strict, the arguments follow its
schema; arguments that the schema does not name are excluded, unless it allows them. Reasoning is
free, and so is text beside calls, but it cannot contain a call token.

    start: thought? calls
    calls: call ("\n" call)*
    call: <tool_call> "\n" (call_0 | call_1) "\n" </tool_call>
    call_0: "{\"name\": \"look\", \"arguments\": " arguments_0 "}"
    arguments_0: %json {"type": "object", ...}

Syntax: https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sglang_omni.models.pending_call import CALL, CALL_CLOSE
from sglang_omni.protocol.tools import Tool, ToolChoice

# The spacing of `json.dumps`, on which the model was trained. With free white space, a model may
# generate white space without end.
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
COMPACT = {"whitespace_flexible": False}
# Keywords that combine schemas, and keywords that describe properties without a name.
COMBINING_KEYWORDS = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "$ref"))
OPEN_KEYWORDS = frozenset(("additionalProperties", "patternProperties", "unevaluatedProperties"))
THOUGHT = r"""
thought: "<think>" thinking /\n{0,2}/
thinking[lazy]: /(.|\n)*<\/think>/
"""
TEXT = rf"""
TEXT: /(.|\n)*/ & ~/(.|\n)*{CALL}(.|\n)*/
"""


def build_answer_grammar(
    tools: Sequence[Tool], tool_choice: ToolChoice, schema: str | None, thinking: bool
) -> str | None:
    """Build the grammar of an answer that may or must call `tools`, or is JSON.

    Args:
        tools: The functions of the request.
        tool_choice: Whether the answer must call a function, and which.
        schema: JSON Schema of the answer as text; None for free text.
        thinking: Whether reasoning may precede the answer.

    Returns:
        The grammar; None if the answer is free, or if the schema alone constrains it.
    """
    tools = tool_choice.choose(tools)
    answer = _build_start_rule(tools, tool_choice, schema)
    if answer is None or not (tools or thinking):
        return None
    start = f"thought? ({answer})" if thinking else answer
    rules = [f"%llguidance {{}}\nstart: {start}\n", *([THOUGHT] if thinking else [])]
    if tools:
        rules += [TEXT, *_build_call_rules(tools, tool_choice)]
    if schema is not None:
        rules.append(f"document: {_build_json_rule(json.loads(schema), COMPACT)}\n")
    return "".join(rules)


def _build_start_rule(
    tools: Sequence[Tool], tool_choice: ToolChoice, schema: str | None
) -> str | None:
    """Return the rule for the answer after the reasoning; None for free text."""
    if tools and tool_choice.forced:
        return "calls"
    if schema is not None:
        return "calls | document" if tools else "document"
    if tool_choice.only or any(tool.strict for tool in tools):
        return f"TEXT (call TEXT){_repeat(tool_choice.parallel)}"
    return None


def _build_call_rules(tools: Sequence[Tool], tool_choice: ToolChoice) -> Iterator[str]:
    """Return the rules `call`, one call of any of `tools`, and `calls`."""
    bodies = " | ".join(f"call_{index}" for index in range(len(tools)))
    again = ' ("\\n" call)*' if tool_choice.parallel else ""
    yield f"calls: call{again}\n"
    yield f'call: {CALL} "\\n" ({bodies}) "\\n" {CALL_CLOSE}\n'
    for index, tool in enumerate(tools):
        opening = json.dumps(f'{{"name": {_quote(tool.name)}, "arguments": ')
        follows_schema = tool.strict or tool_choice.forced
        schema = _build_arguments_schema(tool.parameters) if follows_schema else {"type": "object"}
        yield f'call_{index}: {opening} arguments_{index} "}}"\n'
        yield f"arguments_{index}: {_build_json_rule(schema, SPACING)}\n"


def _build_arguments_schema(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the arguments: none but the declared ones, unless it allows others."""
    return _close({"type": "object", **(parameters or {"properties": {}})})


def _close(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Exclude properties that `schema` does not name.

    A model would otherwise make up names and values without end. A schema without `properties`, or
    with `additionalProperties`, still allows any. Combined schemas (`allOf` etc.) stay unchanged,
    because each part names only some of the properties.
    """
    if schema.keys() & COMBINING_KEYWORDS:
        return schema
    closed: dict[str, Any] = {}
    named = schema.get("properties")
    if isinstance(named, Mapping):
        closed["properties"] = {name: _close_if_schema(value) for name, value in named.items()}
        if not schema.keys() & OPEN_KEYWORDS:
            closed["additionalProperties"] = False
    if "items" in schema:
        closed["items"] = _close_if_schema(schema["items"])
    return {**schema, **closed}


def _close_if_schema(schema: Any) -> Any:
    return _close(schema) if isinstance(schema, Mapping) else schema


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _repeat(parallel: bool) -> str:
    return "*" if parallel else "?"


def _build_json_rule(schema: Mapping[str, Any], spacing: Mapping[str, Any]) -> str:
    """Return a JSON document with its own definitions, so that `$ref` finds them."""
    return f"%json {json.dumps({**schema, 'x-guidance': spacing})}"
