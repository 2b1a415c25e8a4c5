r"""Tools in the format of the checkpoint's chat template.

The system turn lists the functions. A call is JSON between two special tokens. The result of a
function is a turn of the role OBSERVATION, also between two special tokens:

    # Tools ... <tools>\n{signature}\n...</tools> ...
    <tool_call>\n{"name": "look", "arguments": {"at": "mill"}}\n</tool_call>
    <role>OBSERVATION</role>\n<tool_response>\n...\n</tool_response><|role_end|>

The special tokens, the roles, the form of a call and the first sentence of the list are those of
the released template. The rest of the list is worded as in Qwen's templates; it was not compared
with the released template.
"""

import json
from collections.abc import Iterator, Sequence

from sglang_omni.models.ming.prompt.segments import PromptSegment, SpecialToken
from sglang_omni.models.pending_call import CALL, CALL_CLOSE
from sglang_omni.protocol.tools import Tool, ToolCall, ToolResult

RESPONSE, RESPONSE_CLOSE = SpecialToken("<tool_response>"), SpecialToken("</tool_response>")


def render_tool_list(tools: Sequence[Tool]) -> Iterator[PromptSegment]:
    """Render the list of functions, which precedes the thinking switch in the system turn."""
    if not tools:
        return
    signatures = "".join(f"\n{_render_signature(tool)}" for tool in tools)
    yield (
        "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        f"You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
        f"{signatures}\n</tools>\n\nFor each function call, return a json object with function "
        "name and arguments within "
    )
    yield SpecialToken(CALL)
    yield SpecialToken(CALL_CLOSE)
    yield " XML tags:\n"
    yield from _enclose_call('{"name": <function-name>, "arguments": <args-json-object>}')


def render_tool_call(call: ToolCall) -> Iterator[PromptSegment]:
    """Render an earlier call of the model."""
    name = json.dumps(call.name, ensure_ascii=False)
    yield from _enclose_call(f'{{"name": {name}, "arguments": {call.arguments}}}')


def render_tool_result(result: ToolResult) -> Iterator[PromptSegment]:
    """Render the result of a call."""
    yield from ("\n", RESPONSE, f"\n{result.text}\n", RESPONSE_CLOSE)


def _enclose_call(call: str) -> Iterator[PromptSegment]:
    yield from (SpecialToken(CALL), f"\n{call}\n", SpecialToken(CALL_CLOSE))


def _render_signature(tool: Tool) -> str:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)
