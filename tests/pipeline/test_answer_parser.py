"""An answer is parsed alike however it is cut, and its markup never reaches its content."""

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from sglang_omni.models.chat import Reasoning
from sglang_omni.models.pending_call import CALL_TOKENS
from sglang_omni.models.reasoning import THINK_TAGS, ThinkTagParser
from sglang_omni.models.tool_calls import ToolCallParser
from sglang_omni.pipeline.answer_parser import AnswerParser, Part
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.protocol.tools import (
    InvalidToolCall,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolChoice,
)

TAGS = (*THINK_TAGS, *CALL_TOKENS, "<|role_end|>")
FORMAT: Any = SimpleNamespace(
    markup=TAGS, reasoning_parser=ThinkTagParser, tool_parser=ToolCallParser
)
TOOLS = (Tool("look", "", {}),)
ARGUMENTS = '{"at": {"b": ["}", "\\"</tool_call>{", 1]}, "u": "ü\\n"}'
CALL = f'<tool_call>\n{{"name": "look", "arguments": {ARGUMENTS}}}\n</tool_call>'
OTHER = '<tool_call>{"arguments": {"at": 1}, "name": "look"}</tool_call>'
REQUESTS: dict[str, tuple[ChatRequest, bool]] = {
    f"{name}{' thinking' if thinking else ''}": (
        ChatRequest("a", (), SamplingParams(), thinking=thinking, tools=tools),
        stream_arguments,
    )
    for thinking in (False, True)
    for name, tools, stream_arguments in (
        ("plain", (), False),
        ("tools", TOOLS, False),
        ("constrained", TOOLS, True),
    )
}
ANSWERS = {
    "plain": "a < b, <b>bold</b> and x <t",
    "thought": "<think>a plan</think>\n\nYes.",
    "late thought": "Yes. <think>Or no.</think> No.",
    "nested thoughts": "<think>a<think>b</think>c</think>d",
    "closing alone": "</think>Yes.</tool_call> No.",
    "tag in a tag": "<th<think>ink>x</thi</think>nk>",
    "tag in a tag in a tag": "<th<too<|role_end|>l_call>ink>x",
    "tag from a call's gap": f"<tool_c{OTHER}all>x",
    "tag around a closing token": "a</tool_c</tool_call>all>b",
    "call": f"Wait.\n{CALL}\n{CALL} So.",
    "call in the thought": f"<think>{CALL}</think>{CALL}",
    "thought in the call": '<tool_call>{"name": "<think>", "arguments": {}}</tool_call>x',
    "nested call": f"<tool_call>{CALL}</tool_call>",
    "other order": f"{OTHER}x",
    "broken call": "<tool_call>{x}</tool_call>y",
    "role": "Yes.<|role_end|><|role_end",
    "half tags": "<|role <think </think <tool_call </tool_call <",
    "cut thought": "<think>a plan</thi",
    "cut call": CALL[:60],
    "cut token": "Yes. <tool_ca",
    "cut tag in a tag": "Yes <th</tool_cal",
    "only a cut tag": "<thin",
}


def parse(request: ChatRequest, stream_arguments: bool, deltas: Sequence[str]) -> list[Part]:
    parser = AnswerParser(request, FORMAT, stream_arguments)
    parts = [part for delta in deltas for part in parser.push(delta)]
    return [*parts, *parser.finish()]


def join(parts: Sequence[Part]) -> list[Part]:
    """The parts with neighbouring pieces of the same type joined."""
    joined: list[Part] = []
    for kind, group in itertools.groupby(parts, type):
        pieces: list[Any] = list(group)
        if kind is str:
            joined.append("".join(pieces))
        elif kind is Reasoning:
            joined.append(Reasoning("".join(piece.text for piece in pieces)))
        elif kind is ToolCallDelta:
            joined.append(ToolCallDelta("".join(piece.arguments for piece in pieces)))
        else:
            joined += pieces
    return joined


def cuts(text: str) -> Iterator[Sequence[str]]:
    """Every way to cut `text` into two deltas, many into three, and character by character."""
    for i in range(len(text) + 1):
        for j in range(i, len(text) + 1, 1 if len(text) < 80 else 7):
            yield text[:i], text[i:j], text[j:]
    yield tuple(text)


def content(parts: Sequence[Part]) -> str:
    return "".join(part for part in parts if isinstance(part, str))


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize(("request_", "stream_arguments"), REQUESTS.values(), ids=REQUESTS)
def test_no_cut_changes_an_answer_or_lets_markup_through(
    request_: ChatRequest, stream_arguments: bool, answer: str
) -> None:
    whole = join(parse(request_, stream_arguments, [answer]))
    assert not any(tag in content(whole) for tag in TAGS)
    for deltas in cuts(answer):
        assert join(parse(request_, stream_arguments, deltas)) == whole, deltas


def test_no_sequence_of_tags_and_their_pieces_becomes_markup() -> None:
    """All answers of four pieces, in one delta and character by character."""
    pieces = ("<think>", "</think>", "<tool_call>", "<th", "ink>", "</tool_c", "all>", "<", " x")
    for request, stream_arguments in REQUESTS.values():
        for chosen in itertools.product(pieces, repeat=4):
            answer = "".join(chosen)
            whole = parse(request, stream_arguments, [answer])
            assert not any(tag in content(whole) for tag in TAGS), answer
            assert join(parse(request, stream_arguments, answer)) == join(whole), answer


EXPECTED: dict[str, tuple[str, str]] = {
    "plain": ("a < b, <b>bold</b> and x <t", ""),
    "thought": ("Yes.", "a plan"),
    "late thought": ("Yes. Or no. No.", ""),
    "nested thoughts": ("cd", "a<think>b"),
    "tag in a tag": ("x", ""),
    "role": ("Yes.", ""),
    "half tags": ("<|role <think </think <tool_call </tool_call <", ""),
    "cut token": ("Yes. ", ""),
    "cut tag in a tag": ("Yes ", ""),
    "only a cut tag": ("", ""),
}


@pytest.mark.parametrize(("name", "expected"), EXPECTED.items(), ids=EXPECTED)
def test_the_content_and_the_reasoning_are_what_is_left(
    name: str, expected: tuple[str, str]
) -> None:
    parts = parse(*REQUESTS["plain"], [ANSWERS[name]])
    reasoning = "".join(part.text for part in parts if isinstance(part, Reasoning))
    assert (content(parts), reasoning) == expected


@pytest.mark.parametrize(
    "fields",
    [{}, {"thinking": True}, {"tools": TOOLS}],
    ids=["plain", "thinking", "tools"],
)
def test_a_document_keeps_the_tags_in_its_strings(fields: Any) -> None:
    document = '{"html": "<think></think><|role_end|>"}'
    request = ChatRequest("a", (), SamplingParams(json_schema="{}"), **fields)
    for deltas in cuts(document):
        assert content(parse(request, bool(fields.get("tools")), deltas)) == document


def test_arguments_are_streamed_as_they_are_written_and_equal_the_whole_call() -> None:
    request, stream_arguments = REQUESTS["constrained"]
    for deltas in cuts(CALL):
        start, *pieces, call = parse(request, stream_arguments, deltas)
        assert (start, call) == (ToolCallStart("look"), ToolCall("look", ARGUMENTS))
        assert join(pieces) == [ToolCallDelta(ARGUMENTS)]
    assert json.loads(ARGUMENTS)["at"]["b"][1] == '"</tool_call>{'


def test_arguments_are_not_held_back_longer_than_needed() -> None:
    parser = AnswerParser(*[REQUESTS["constrained"][0], FORMAT, True])
    deltas = ["<tool_call>", '{"name": "look", "arg', 'uments": {', '"a', '": 1', "}}"]
    assert [parser.push(delta) for delta in deltas] == [
        *([], []),
        [ToolCallStart("look"), ToolCallDelta("{")],
        *([ToolCallDelta('"a')], [ToolCallDelta('": 1')], [ToolCallDelta("}")]),
    ]


@pytest.mark.parametrize("size", range(len("<tool_call>"), len(CALL)))
def test_a_cut_call_is_no_call(size: int) -> None:
    for request, stream_arguments in (REQUESTS["tools"], REQUESTS["constrained"]):
        parts = parse(request, stream_arguments, [*CALL[:size]])
        if not stream_arguments and CALL[:size].count("</tool_call>"):
            continue  # Without a grammar the text after a token in an unclosed string is content.
        assert parts[-1] == InvalidToolCall()
        sent = "".join(part.arguments for part in parts if isinstance(part, ToolCallDelta))
        assert ARGUMENTS.startswith(sent)
        assert not any(isinstance(part, ToolCall) for part in parts)


def test_one_call_ends_the_answer_if_only_one_is_allowed() -> None:
    request = ChatRequest(
        "a", (), SamplingParams(), tools=TOOLS, tool_choice=ToolChoice(True, (), False)
    )
    for deltas in ([f"{OTHER}x{OTHER}"], f"{OTHER}x{OTHER}"):
        parser = AnswerParser(request, FORMAT, True)
        parts = [part for delta in deltas for part in parser.push(delta)]
        assert parser.has_ended
        assert [*parts, *parser.finish()] == [ToolCall("look", '{"at": 1}')]


def test_a_long_call_costs_no_more_per_token() -> None:
    """100,000 tokens: searching the whole call for each of them would take minutes."""
    request, stream_arguments = REQUESTS["constrained"]
    text = '{"name": "look", "arguments": {"a": "'
    began = time.process_time()
    parts = parse(request, stream_arguments, ["<tool_call>", text, *["abc "] * 100_000])
    assert time.process_time() - began < 10
    assert len(parts) > 100_000
