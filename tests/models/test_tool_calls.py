"""Calls are read from an answer however it is cut into deltas."""

import pytest

from sglang_omni.models.tool_calls import ToolCallParser, parse_call
from sglang_omni.protocol.tools import CallPart, InvalidToolCall, ToolCall

CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "mühle"}}\n</tool_call>'
CALLED = ToolCall("look", '{"at": "mühle"}')


def read(*deltas: str) -> list[CallPart]:
    """What is read, with neighbouring text joined."""
    reader, parts = ToolCallParser(), []
    for delta in deltas:
        parts += reader.push(delta)
    joined: list[CallPart] = []
    for part in (*parts, *reader.finish()):
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


CASES = {
    "call": (CALL, [CALLED]),
    "text and call": (f"Let me see.\n{CALL}", ["Let me see.", CALLED]),
    "two calls": (f"{CALL}\n{CALL}", [CALLED, CALLED]),
    "text behind": (f"{CALL}\n\nWait.", [CALLED, "Wait."]),
    "no call": ("a < b, <tool_ is not one ", ["a < b, <tool_ is not one "]),
    "not json": ("<tool_call>{x}</tool_call>", [InvalidToolCall()]),
    "not json, text around": ("A <tool_call>{x}</tool_call> b", ["A", InvalidToolCall(), "b"]),
    "no end": ('Hm. <tool_call>\n{"name": "look"', ["Hm.", InvalidToolCall()]),
    "no end behind a call": (f"{CALL}\n<tool_call>", [CALLED, InvalidToolCall()]),
    "no beginning": ('{"name": 1}\n</tool_call> Yes.', ['{"name": 1}\n Yes.']),
    "half a character": (
        '<tool_call>{"name": "look", "arguments": {"at": "\\ud800"}}</tool_call>',
        [ToolCall("look", '{"at": "\\ud800"}')],
    ),
    "half a character in the name": (
        '<tool_call>{"name": "\\ud800"}</tool_call>',
        [InvalidToolCall()],
    ),
    "a mark in a string": (
        '<tool_call>{"name": "look", "arguments": {"at": "a\\"</tool_call>"}}</tool_call>',
        [ToolCall("look", '{"at": "a\\"</tool_call>"}')],
    ),
    "a string without end": (
        f'<tool_call>{{"a</tool_call> {CALL}',
        [InvalidToolCall(), CALLED],
    ),
    "no arguments": ('<tool_call>{"name": "look"}</tool_call>', [ToolCall("look", "{}")]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("answer", "parts"), CASES.values(), ids=CASES)
def test_calls_are_read_however_the_answer_is_cut(answer: str, parts: list[CallPart]) -> None:
    assert read(answer) == parts
    assert read(*answer) == parts
    for cut in range(len(answer)):
        assert read(answer[:cut], answer[cut:]) == parts, cut


def test_text_is_not_held_back_longer_than_needed() -> None:
    reader = ToolCallParser()
    assert [reader.push(delta) for delta in ("One", " two <", "b>")] == [
        ["One"],
        [" two"],
        [" <b>"],
    ]


@pytest.mark.parametrize("text", ["[]", '"look"', '{"name": 5}', '{"name": "a", "arguments": []}'])
def test_what_is_not_a_call_is_not_read_as_one(text: str) -> None:
    assert parse_call(text) is None
