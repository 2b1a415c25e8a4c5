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
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sglang_omni.models.ming.prompt.segments import PromptSegment, SpecialToken
from sglang_omni.protocol.tools import CallPart, InvalidToolCall, Tool, ToolCall, ToolResult
from sglang_omni.protocol.unicode import is_unicode

CALL, CALL_CLOSE = "<tool_call>", "</tool_call>"
RESPONSE, RESPONSE_CLOSE = SpecialToken("<tool_response>"), SpecialToken("</tool_response>")
CALL_TOKENS = (CALL, CALL_CLOSE)
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


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


def parse_call(text: str) -> ToolCall | None:
    """Parse the text between the tokens of a call; return None if it is not a call."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict) or not is_unicode(call["name"]):
        return None
    return ToolCall(call["name"], _dump_arguments(arguments))


def _dump_arguments(arguments: dict[str, Any]) -> str:
    """Return the arguments as JSON, with escapes only if they contain a lone surrogate."""
    text = json.dumps(arguments, ensure_ascii=False)
    return text if is_unicode(text) else json.dumps(arguments)


class ToolCallParser:
    """Separates the calls of one answer from its text, while it is generated.

    A call token never becomes text. Invalid text between call tokens, and a call that does not end,
    become an `InvalidToolCall`. A closing token alone is dropped. Text that may be the beginning of
    a call token is held back until more text arrives; the result does not depend on the deltas.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._after_call = False

    def push(self, delta: str) -> list[CallPart]:
        """Parse more of the answer; return the parts that are complete, in order."""
        self._pending += delta
        parts: list[CallPart] = []
        while CALL in self._pending:
            before, _, rest = self._pending.partition(CALL)
            end = _find_call_end(rest)
            text = before.rstrip()
            if end is None:
                self._pending = self._pending[len(text) :]
                return parts + self._add_text(text)
            self._pending = rest[end + len(CALL_CLOSE) :]
            parts += [*self._add_text(text), self._add_call(rest[:end])]
        num_kept = _count_held_back(self._pending)
        end = len(self._pending) - num_kept
        text, self._pending = self._pending[:end], self._pending[end:]
        return parts + self._add_text(text)

    def finish(self) -> list[CallPart]:
        """Return the remaining parts at the end of the answer."""
        parts: list[CallPart] = []
        while CALL in self._pending and CALL_CLOSE in self._pending:
            # The closing token was taken for part of a JSON string that did not end.
            broken, _, self._pending = self._pending.partition(CALL_CLOSE)
            parts += [self._add_call(broken.partition(CALL)[2]), *self.push("")]
        rest, self._pending = self._pending, ""
        return [*parts, InvalidToolCall()] if CALL in rest else parts + self._add_text(rest)

    def _add_call(self, content: str) -> ToolCall | InvalidToolCall:
        self._after_call = True
        return parse_call(content) or InvalidToolCall()

    def _add_text(self, text: str) -> list[CallPart]:
        """Return the text as a part, without white space between calls; [] if none is left."""
        text = text.replace(CALL_CLOSE, "")
        if self._after_call:
            text = text.lstrip()
        if not text:
            return []
        self._after_call = False
        return [text]


def _find_call_end(rest: str) -> int | None:
    """Return the end of the call at the beginning of `rest`; None if it is not complete.

    A closing token inside a JSON string does not end the call.
    """
    end = rest.find(CALL_CLOSE)
    while end >= 0 and '"' in STRINGS.sub("", rest[:end]):
        end = rest.find(CALL_CLOSE, end + 1)
    return None if end < 0 else end


def _count_held_back(text: str) -> int:
    """Return the length of a tail that may begin a call token: white space, then its prefix."""
    for size in range(min(len(text), len(CALL_CLOSE) - 1), 0, -1):
        if any(token.startswith(text[-size:]) for token in CALL_TOKENS):
            return len(text) - len(text[:-size].rstrip())
    return len(text) - len(text.rstrip())
