"""The grammar of an answer whose form is not left to the model, in llguidance's Lark.

A call has the form that the checkpoint was trained on (`tools.py`): its marks are the tokens that
only a call has, and between them the name is one of the functions' and the arguments are a JSON
object; of that function's schema, if the call is forced or the function strict. A thought stays
free, and so does text beside calls, except that it may not spell the mark of a call.

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

from sglang_omni.models.ming.tools import CALL, CALL_CLOSE, Calling, Tool

# As `json.dumps` writes it, which is what the model has seen. A model that may put any white space
# into JSON may go on with it for ever.
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
COMPACT = {"whitespace_flexible": False}
THOUGHT = r"""
thought: "<think>" thinking /\n{0,2}/
thinking[lazy]: /(.|\n)*<\/think>/
"""
TEXT = rf"""
TEXT: /(.|\n)*/ & ~/(.|\n)*{CALL}(.|\n)*/
"""


def answer_grammar(
    tools: Sequence[Tool], calling: Calling, schema: str | None, thinking: bool
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


def _start(tools: Sequence[Tool], calling: Calling, schema: str | None) -> str | None:
    """The rule for what follows the thought; None for free text."""
    if tools and calling.forced:
        return "calls"
    if schema is not None:
        return "calls | document" if tools else "document"
    if calling.only or any(tool.strict for tool in tools):
        return f"TEXT (call TEXT){_several(calling.parallel)}"
    return None


def _call_rules(tools: Sequence[Tool], calling: Calling) -> Iterator[str]:
    """`call`, one call of any of `tools`, and `calls`."""
    bodies = " | ".join(f"call_{index}" for index in range(len(tools)))
    again = ' ("\\n" call)*' if calling.parallel else ""
    yield f"calls: call{again}\n"
    yield f'call: {CALL} "\\n" ({bodies}) "\\n" {CALL_CLOSE}\n'
    for index, tool in enumerate(tools):
        opening = json.dumps(f'{{"name": {_quoted(tool.name)}, "arguments": ')
        is_held = tool.strict or calling.forced
        schema = {"type": "object", **(tool.parameters if is_held else {})}
        yield f'call_{index}: {opening} arguments_{index} "}}"\n'
        yield f"arguments_{index}: {_json(schema, SPACING)}\n"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _several(parallel: bool) -> str:
    return "*" if parallel else "?"


def _json(schema: Mapping[str, Any], spacing: Mapping[str, Any]) -> str:
    """A document of its own, so that `$ref` finds what the schema defines."""
    return f"%json {json.dumps({**schema, 'x-guidance': spacing})}"
