"""The grammar of an answer whose form is not left to the model, in llguidance's Lark.

A call has the form that the checkpoint was trained on (`tools.py`): its marks are the tokens that
only a call has, and between them the name is one of the functions' and the arguments are a JSON
object. If the call is forced or the function strict it is one of that function's schema, without
arguments that the schema does not name, unless it says so. A thought stays free, and so does text
beside calls, except that it may not spell the mark of a call.

    start: thought? calls
    calls: call ("\\n" call)*
    call: <tool_call> "\\n" (call_0 | call_1) "\\n" </tool_call>
    call_0: "{\\"name\\": \\"look\\", \\"arguments\\": " arguments_0 "}"
    arguments_0: %json {"type": "object", ...}

Syntax: https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sglang_omni.models.ming.prompt.tools import CALL, CALL_CLOSE
from sglang_omni.protocol.tools import Tool, ToolChoice

# As `json.dumps` writes it, which is what the model has seen. A model that may put any white space
# into JSON may go on with it for ever.
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
COMPACT = {"whitespace_flexible": False}
# Keywords by which a schema is put together from others, and by which it has properties unnamed.
COMPOSED = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "$ref"))
OPENED = frozenset(("additionalProperties", "patternProperties", "unevaluatedProperties"))
THOUGHT = r"""
thought: "<think>" thinking /\n{0,2}/
thinking[lazy]: /(.|\n)*<\/think>/
"""
TEXT = rf"""
TEXT: /(.|\n)*/ & ~/(.|\n)*{CALL}(.|\n)*/
"""


def answer_grammar(
    tools: Sequence[Tool], calling: ToolChoice, schema: str | None, thinking: bool
) -> str | None:
    """The grammar of an answer that may or must call `tools`, or else is JSON of `schema` (in
    text), perhaps after a thought. None where the answer is free, or the schema alone says it all.
    """
    tools = calling.choose(tools)
    answer = _start(tools, calling, schema)
    if answer is None or not (tools or thinking):
        return None
    start = f"thought? ({answer})" if thinking else answer
    rules = [f"%llguidance {{}}\nstart: {start}\n", *([THOUGHT] if thinking else [])]
    if tools:
        rules += [TEXT, *_call_rules(tools, calling)]
    if schema is not None:
        rules.append(f"document: {_json(json.loads(schema), COMPACT)}\n")
    return "".join(rules)


def _start(tools: Sequence[Tool], calling: ToolChoice, schema: str | None) -> str | None:
    """The rule for what follows the thought; None for free text."""
    if tools and calling.forced:
        return "calls"
    if schema is not None:
        return "calls | document" if tools else "document"
    if calling.only or any(tool.strict for tool in tools):
        return f"TEXT (call TEXT){_several(calling.parallel)}"
    return None


def _call_rules(tools: Sequence[Tool], calling: ToolChoice) -> Iterator[str]:
    """`call`, one call of any of `tools`, and `calls`."""
    bodies = " | ".join(f"call_{index}" for index in range(len(tools)))
    again = ' ("\\n" call)*' if calling.parallel else ""
    yield f"calls: call{again}\n"
    yield f'call: {CALL} "\\n" ({bodies}) "\\n" {CALL_CLOSE}\n'
    for index, tool in enumerate(tools):
        opening = json.dumps(f'{{"name": {_quoted(tool.name)}, "arguments": ')
        is_held = tool.strict or calling.forced
        schema = _arguments(tool.parameters) if is_held else {"type": "object"}
        yield f'call_{index}: {opening} arguments_{index} "}}"\n'
        yield f"arguments_{index}: {_json(schema, SPACING)}\n"


def _arguments(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a held call's arguments. A function that declares no parameters has none; one
    that declares some has no others, unless it says so."""
    return _closed({"type": "object", **(parameters or {"properties": {}})})


def _closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` without properties that it does not name. A model would make up names and values for
    as long as it may; whoever means any object writes no `properties`, or `additionalProperties`.
    What is put together (`allOf` and its like) is left alone: each part names some properties only.
    """
    if schema.keys() & COMPOSED:
        return schema
    inside: dict[str, Any] = {}
    named = schema.get("properties")
    if isinstance(named, Mapping):
        inside["properties"] = {name: _closed_if_schema(one) for name, one in named.items()}
        if not schema.keys() & OPENED:
            inside["additionalProperties"] = False
    if "items" in schema:
        inside["items"] = _closed_if_schema(schema["items"])
    return {**schema, **inside}


def _closed_if_schema(schema: Any) -> Any:
    return _closed(schema) if isinstance(schema, Mapping) else schema


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _several(parallel: bool) -> str:
    return "*" if parallel else "?"


def _json(schema: Mapping[str, Any], spacing: Mapping[str, Any]) -> str:
    """A document of its own, so that `$ref` finds what the schema defines."""
    return f"%json {json.dumps({**schema, 'x-guidance': spacing})}"
