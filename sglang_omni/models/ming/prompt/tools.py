"""Functions that the model may call, in the format of the checkpoint's chat template.

The system turn lists them, a call is JSON between two control tokens, and what a function returned
is a turn of the role OBSERVATION, again between two:

    # Tools ... <tools>\\n{signature}\\n...</tools> ...
    <tool_call>\\n{"name": "look", "arguments": {"at": "mill"}}\\n</tool_call>
    <role>OBSERVATION</role>\\n<tool_response>\\n...\\n</tool_response><|role_end|>

The marks, the roles, the form of a call and the list's first sentence are the released template's.
The rest of the list's wording is its model family's; the released one was not at hand to compare.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sglang_omni.models.ming.prompt.segments import Piece, SpecialToken
from sglang_omni.protocol.tools import CallPart, InvalidToolCall, Tool, ToolCall, ToolResult
from sglang_omni.protocol.unicode import is_unicode

CALL, CALL_CLOSE = "<tool_call>", "</tool_call>"
RESPONSE, RESPONSE_CLOSE = SpecialToken("<tool_response>"), SpecialToken("</tool_response>")
MARKS = (CALL, CALL_CLOSE)
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def tools_pieces(tools: Sequence[Tool]) -> Iterator[Piece]:
    """What the system turn says of the functions, in front of the switch for thinking."""
    if not tools:
        return
    signatures = "".join(f"\n{_signature(tool)}" for tool in tools)
    yield (
        "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        f"You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
        f"{signatures}\n</tools>\n\nFor each function call, return a json object with function "
        "name and arguments within "
    )
    yield SpecialToken(CALL)
    yield SpecialToken(CALL_CLOSE)
    yield " XML tags:\n"
    yield from _marked('{"name": <function-name>, "arguments": <args-json-object>}')


def call_pieces(call: ToolCall) -> Iterator[Piece]:
    """A call that the model made earlier."""
    name = json.dumps(call.name, ensure_ascii=False)
    yield from _marked(f'{{"name": {name}, "arguments": {call.arguments}}}')


def result_pieces(result: ToolResult) -> Iterator[Piece]:
    """What came of it."""
    yield from ("\n", RESPONSE, f"\n{result.text}\n", RESPONSE_CLOSE)


def _marked(call: str) -> Iterator[Piece]:
    yield from (SpecialToken(CALL), f"\n{call}\n", SpecialToken(CALL_CLOSE))


def _signature(tool: Tool) -> str:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


def parse_call(text: str) -> ToolCall | None:
    """What stands between the marks of a call; None if it is not one."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict) or not is_unicode(call["name"]):
        return None
    return ToolCall(call["name"], _object_text(arguments))


def _object_text(arguments: dict[str, Any]) -> str:
    """The arguments as JSON. Characters stand for themselves, unless one is half of a surrogate
    pair, which only JSON's escapes can spell."""
    text = json.dumps(arguments, ensure_ascii=False)
    return text if is_unicode(text) else json.dumps(arguments)


class CallReader:
    """Separates the calls in one answer from its text, while it is written.

    No mark of a call is ever text. What stands between the marks and is not a call, and a call that
    never ends, is an `InvalidToolCall`; a closing mark alone is nothing. How the answer is cut into
    deltas makes no difference, but for text that may begin a mark, which is held back.
    """

    def __init__(self) -> None:
        self._held = ""
        self._after_call = False

    def push(self, delta: str) -> list[CallPart]:
        """Take more of the answer; returns what is certain by now, in order."""
        self._held += delta
        read: list[CallPart] = []
        while CALL in self._held:
            before, _, rest = self._held.partition(CALL)
            end = _end(rest)
            said = before.rstrip()
            if end is None:
                self._held = self._held[len(said) :]
                return read + self._said(said)
            self._held = rest[end + len(CALL_CLOSE) :]
            read += [*self._said(said), self._called(rest[:end])]
        keep = _begun(self._held)
        said, self._held = (
            self._held[: len(self._held) - keep],
            self._held[len(self._held) - keep :],
        )
        return read + self._said(said)

    def finish(self) -> list[CallPart]:
        """What was held back for a call that did not come, and calls behind it."""
        read: list[CallPart] = []
        while CALL in self._held and CALL_CLOSE in self._held:
            # It was taken for a part of a string, and that never ended.
            broken, _, self._held = self._held.partition(CALL_CLOSE)
            read += [self._called(broken.partition(CALL)[2]), *self.push("")]
        held, self._held = self._held, ""
        return [*read, InvalidToolCall()] if CALL in held else read + self._said(held)

    def _called(self, inside: str) -> ToolCall | InvalidToolCall:
        self._after_call = True
        return parse_call(inside) or InvalidToolCall()

    def _said(self, text: str) -> list[CallPart]:
        """Text that is not empty; blanks between calls are none."""
        text = text.replace(CALL_CLOSE, "")
        if self._after_call:
            text = text.lstrip()
        if not text:
            return []
        self._after_call = False
        return [text]


def _end(rest: str) -> int | None:
    """Where the call that `rest` begins with ends; None if it goes on. A mark within a string of
    its JSON ends nothing."""
    end = rest.find(CALL_CLOSE)
    while end >= 0 and '"' in STRINGS.sub("", rest[:end]):
        end = rest.find(CALL_CLOSE, end + 1)
    return None if end < 0 else end


def _begun(text: str) -> int:
    """Length of the end of `text` that may begin a mark: blanks, then a part of it."""
    for size in range(min(len(text), len(CALL_CLOSE) - 1), 0, -1):
        if any(mark.startswith(text[-size:]) for mark in MARKS):
            return len(text) - len(text[:-size].rstrip())
    return len(text) - len(text.rstrip())
