"""The checkpoint's tool format: how functions are listed, and calls read and written back."""

import pytest

from sglang_omni.models.ming.prompt.chat import render_chat
from sglang_omni.models.ming.prompt.segments import SpecialToken
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.prompt.tool_tokens import ToolTokenDecoder
from sglang_omni.models.ming.prompt.tools import ToolCallParser, parse_call
from sglang_omni.pipeline.request import TextPart
from sglang_omni.protocol.tools import CallPart, InvalidToolCall, Tool, ToolCall, ToolResult
from tests.models.ming.prompt.test_chat import Turn
from tests.testing.golden import TINY

LOOK = Tool("look", "Looks at a place.", {"type": "object", "properties": {"at": {}}})
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


def test_functions_are_listed_in_the_system_turn() -> None:
    asked = [Turn("system", (TextPart("Be brief."),)), Turn("user", (TextPart("hi"),))]
    prompt = str(render_chat(asked, tools=[LOOK]))
    assert prompt == (
        "<role>SYSTEM</role>Be brief.\n\n# Tools\n\n"
        "You may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        '{"type": "function", "function": {"name": "look", "description": "Looks at a place.", '
        '"parameters": {"type": "object", "properties": {"at": {}}}}}\n</tools>\n\n'
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>\n'
        "detailed thinking off<|role_end|>"
        "<role>HUMAN</role>hi<|role_end|><role>ASSISTANT</role>"
    )


def test_calls_and_results_are_turns_with_control_tokens() -> None:
    prompt = render_chat(
        [
            Turn("user", (TextPart("What is there?"),)),
            Turn("assistant", (CALLED,)),
            Turn("tool", (ToolResult("a </tool_response> of wood"),)),
        ]
    )
    assert str(prompt).endswith(
        f"<role>ASSISTANT</role>{CALL}<|role_end|><role>OBSERVATION</role>"
        "\n<tool_response>\na </tool_response> of wood\n</tool_response><|role_end|>"
        "<role>ASSISTANT</role>"
    )
    # What a function returned cannot close its own turn.
    assert prompt.segments.count(SpecialToken("</tool_response>")) == 1


def test_without_functions_the_prompt_is_what_it_was() -> None:
    asked = [Turn("user", (TextPart("hi"),))]
    assert render_chat(asked, tools=()) == render_chat(asked)
    assert "Tools" not in str(render_chat(asked))


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


def test_the_marks_are_special_tokens_that_are_spelled_out_only_for_reading() -> None:
    tokenizer = ThinkerTokenizer(TINY)
    mark = tokenizer.token_id("<tool_call>")
    assert tokenizer.token_bytes(mark) == b""
    spelled = ToolTokenDecoder(tokenizer)
    assert spelled.token_bytes(mark) == b"<tool_call>"
    assert spelled.token_bytes(tokenizer.token_id("<|role_end|>")) == b""
    (letter,) = tokenizer.encode_text("a")
    assert spelled.token_bytes(letter) == b"a"
