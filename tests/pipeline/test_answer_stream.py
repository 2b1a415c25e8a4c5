"""Calls of functions leave the pipeline as events, and are not spoken."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from sglang_omni.engines.thinker.contract import FinishReason, ThinkerOutput, ThinkerRequest
from sglang_omni.pipeline.answer_parser import AnswerParser, Part
from sglang_omni.pipeline.answer_stream import select_text, stream_parts
from sglang_omni.pipeline.decode import TextDecoder
from sglang_omni.pipeline.request import (
    ChatRequest,
    Finished,
    Message,
    Started,
    TextDelta,
    TextPart,
    ToolCalled,
    Voice,
)
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.pipeline.segment import SegmentSettings
from sglang_omni.pipeline.speech import RequestUsage
from sglang_omni.protocol.sampling import Grammar, SamplingParams
from sglang_omni.protocol.tools import Tool, ToolCall, ToolCallDelta, ToolCallStart, ToolChoice
from tests.pipeline.engines import SPEECH, TEXT_ONLY, ScriptedEngine, admit_all, end_of, script_hum
from tests.testing.family import CHAT, VOICES, Tokens, write_call

QUESTION = (Message("user", (TextPart("What is there?"),)),)
VOICE = Voice(VOICES[0], seed=5)


@pytest.fixture
def cut_call(tokenizer: Tokens) -> tuple[int, ...]:
    """The tokens of a call that ends within its name."""
    text = write_call("look", "{}")
    return tuple(tokenizer.encode_answer(text[: text.index("look") + 2]))


TOOLS = (Tool("look", "", {}),)
CALLING = ChatRequest("a", QUESTION, SamplingParams(), tools=TOOLS)


def parts_of(
    outputs: AsyncGenerator[ThinkerOutput, None], request: ChatRequest = CALLING
) -> AsyncGenerator[Part | Started, None]:
    """The parts of what the thinker writes to `request`."""
    decoder = TextDecoder(CHAT.tool_tokens, request.sampling.stop)
    return stream_parts(outputs, decoder, AnswerParser(request, CHAT, False), RequestUsage())


async def write(tokenizer: Tokens, *texts: str) -> AsyncGenerator[ThinkerOutput, None]:
    for text in texts:
        yield ThinkerOutput(tuple(tokenizer.encode_answer(text)), 7, 0, 9)


async def test_calls_are_told_apart_from_text(tokenizer: Tokens) -> None:
    outputs = write(tokenizer, "Wait. ", write_call("look", "{}"), "<")
    assert [part async for part in parts_of(outputs)] == [
        *(Started(), "Wait."),
        *(ToolCall("look", "{}"), "<"),
    ]


async def test_only_text_is_spoken(tokenizer: Tokens) -> None:
    parts = parts_of(write(tokenizer, "Wait. ", write_call("look", "{}"), "So."))
    assert [part async for part in select_text(parts)] == ["Wait.", "So."]


async def test_closing_closes_the_source(tokenizer: Tokens) -> None:
    thinker = ScriptedEngine(lambda request: write(tokenizer, "One. ", "Two."))
    reader = select_text(parts_of(thinker.submit(None)))
    assert await anext(reader) == "One."
    assert thinker.open == 1
    await reader.aclose()
    assert thinker.open == 0


@pytest.mark.parametrize(
    ("request_fields", "texts"),
    [({"tool_choice": ToolChoice(parallel=False)}, 2), ({}, 3)],
    ids=["one call", "several calls"],
)
async def test_the_thinker_stops_after_the_last_allowed_call(
    tokenizer: Tokens, request_fields: Any, texts: int
) -> None:
    read: list[str] = []

    async def outputs() -> AsyncGenerator[ThinkerOutput, None]:
        for text in ("Wait.", write_call("look", "{}"), write_call("look", "{}")):
            read.append(text)
            yield ThinkerOutput(tuple(tokenizer.encode_answer(text)), 7, 0, 9)

    parts = [part async for part in parts_of(outputs(), replace(CALLING, **request_fields))]
    assert (len(read), parts.count(ToolCall("look", "{}"))) == (texts, texts - 1)


@pytest.mark.parametrize("voice", [None, VOICE], ids=["text", "speech"])
async def test_a_call_in_an_answer_is_an_event_and_is_not_spoken(
    tokenizer: Tokens, voice: Voice | None
) -> None:
    call = tuple(tokenizer.encode_answer(write_call("look", '{"at": 1}')))
    said = tuple(tokenizer.encode_text("Let me see. "))

    async def thinking(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        for ids in (said, call[:1], call[1:-1]):
            yield ThinkerOutput(ids, 7, 0, 9)
        yield ThinkerOutput(call[-1:], 7, 0, 9, "stop")

    talker = ScriptedEngine(script_hum())
    pipeline = Pipeline(
        TEXT_ONLY,
        admit_all(ScriptedEngine(thinking), talker),
        CHAT,
        512,
        SegmentSettings(),
        **SPEECH,
    )
    tools = (Tool("look", "", {}),)
    asked = ChatRequest("a", QUESTION, SamplingParams(), voice, tools=tools)
    events = [event async for event in pipeline.respond(asked)]
    assert [e.call for e in events if isinstance(e, ToolCalled)] == [ToolCall("look", '{"at": 1}')]
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown == "Let me see."
    assert [request.text for request in talker.requests] == (["Let me see."] if voice else [])


async def test_a_cut_call_of_a_held_answer_is_counted_and_neither_shown_nor_spoken(
    cut_call: tuple[int, ...],
) -> None:
    async def thinking(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        yield ThinkerOutput(cut_call, 7, 0, 9, "length")

    thinker, talker = ScriptedEngine(thinking), ScriptedEngine(script_hum())
    pipeline = Pipeline(
        TEXT_ONLY, admit_all(thinker, talker), CHAT, 512, SegmentSettings(), **SPEECH
    )
    tools = (Tool("look", "", {}),)
    asked = ChatRequest(
        "a", QUESTION, SamplingParams(), VOICE, tools=tools, tool_choice=ToolChoice(forced=True)
    )
    events = [event async for event in pipeline.respond(asked)]
    assert talker.requests == []
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown == ""
    end = end_of(events)
    assert (events[0], end.reason, end.invalid_calls) == (Started(), "length", 1)
    grammar = thinker.requests[0].sampling.grammar
    lark = CHAT.answer_grammar(tools, asked.tool_choice, None, False)
    assert grammar == (lark and Grammar(lark, "tools"))


@pytest.mark.parametrize(
    ("fields", "is_streamed"),
    [
        ({"tool_choice": ToolChoice(forced=True)}, True),
        ({"tools": (replace(TOOLS[0], strict=True),)}, True),
        ({"tool_choice": ToolChoice(only=("look",))}, True),
        ({}, False),
    ],
    ids=["forced", "strict", "allowed", "automatic"],
)
async def test_the_arguments_of_a_call_under_a_grammar_are_streamed(
    tokenizer: Tokens, fields: Any, is_streamed: bool
) -> None:
    ids = tokenizer.encode_answer(write_call("look", '{"at": "the mill"}'))

    async def thinking(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        for index, token in enumerate(ids, 1):
            yield ThinkerOutput((token,), 7, 0, index, "stop" if index == len(ids) else None)

    asked = replace(CALLING, **fields)
    if CHAT.answer_grammar(asked.tools, asked.tool_choice, None, False) is None and is_streamed:
        pytest.skip("the model has no grammar of calls")
    pipeline = Pipeline(
        TEXT_ONLY, admit_all(ScriptedEngine(thinking), None), CHAT, 512, SegmentSettings(), **SPEECH
    )
    started, *events, called, end = [event async for event in pipeline.respond(asked)]
    assert (started, called) == (Started(), ToolCalled(ToolCall("look", '{"at": "the mill"}')))
    assert isinstance(end, Finished)
    assert (end.reason, end.invalid_calls) == ("stop", 0)
    if not is_streamed:
        assert events == []
        return
    start, *deltas = events
    assert start == ToolCallStart("look")
    pieces = [event.arguments for event in deltas if isinstance(event, ToolCallDelta)]
    assert "".join(pieces) == '{"at": "the mill"}'
    assert len(pieces) == len(deltas) > 3


async def test_special_tokens_have_no_text(tokenizer: Tokens) -> None:
    """Marks of roles, of media and all others: the text around them is all that is shown."""
    first, last = tokenizer.encode_text("One. "), tokenizer.encode_text("Two.")
    for request in (ChatRequest("a", QUESTION, SamplingParams(), VOICE), CALLING):
        calls = {*tokenizer.encode_answer(write_call("look", "{}"))} if request.tools else set()
        special = [token for token in tokenizer.special if token not in calls]
        assert special

        async def thinking(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
            yield ThinkerOutput((*first, *special, *last), 7, 0, 9, "stop")  # noqa: B023

        engines = admit_all(ScriptedEngine(thinking), ScriptedEngine(script_hum()))
        pipeline = Pipeline(TEXT_ONLY, engines, CHAT, 512, SegmentSettings(), **SPEECH)
        events = [event async for event in pipeline.respond(request)]
        shown = "".join(event.text for event in events if isinstance(event, TextDelta))
        assert shown == "One. Two."


async def test_a_schema_alone_is_left_to_sglang(tokenizer: Tokens) -> None:
    thinker = ScriptedEngine(lambda request: one_word(tokenizer))
    pipeline = Pipeline(TEXT_ONLY, admit_all(thinker, None), CHAT, 512, SegmentSettings(), **SPEECH)
    schema = SamplingParams(json_schema="{}")
    for thinking in (False, True):
        asked = ChatRequest("a", QUESTION, schema, thinking=thinking)
        assert [event async for event in pipeline.respond(asked)]
    plain, thoughtful = (request.sampling for request in thinker.requests)
    assert (plain.json_schema, plain.grammar) == ("{}", None)
    lark = CHAT.answer_grammar((), asked.tool_choice, "{}", True)
    if lark is None:
        pytest.skip("the model has no grammar of an answer after its reasoning")
    assert (thoughtful.json_schema, thoughtful.grammar) == (None, Grammar(lark, "response_format"))


async def one_word(tokenizer: Tokens) -> AsyncGenerator[ThinkerOutput, None]:
    yield ThinkerOutput(tuple(tokenizer.encode_text("{}")), 7, 0, 1, "stop")


async def test_without_tools_the_marks_are_tokens_like_any_other_special_ones(
    tokenizer: Tokens,
) -> None:
    mark = tokenizer.encode_answer(write_call("look", "{}"))[0]
    if mark not in tokenizer.special:
        pytest.skip("no special token begins the model's calls")

    async def thinking(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        yield ThinkerOutput((mark, *tokenizer.encode_text("Yes.")), 7, 0, 9, "stop")

    pipeline = Pipeline(
        TEXT_ONLY, admit_all(ScriptedEngine(thinking), None), CHAT, 512, SegmentSettings(), **SPEECH
    )
    events = [e async for e in pipeline.respond(ChatRequest("a", QUESTION, SamplingParams()))]
    (said,) = events[1:-1]
    assert said == TextDelta("Yes.")


@pytest.mark.parametrize("end", ["length", "stop"])
async def test_a_cut_call_beside_text_is_neither_shown_nor_spoken(
    tokenizer: Tokens, cut_call: tuple[int, ...], end: FinishReason
) -> None:
    said = tokenizer.encode_text("Let me see. ")

    async def thinking(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        yield ThinkerOutput(tuple(said), 7, 0, 3)
        yield ThinkerOutput(cut_call, 7, 0, 9, end)

    talker = ScriptedEngine(script_hum())
    pipeline = Pipeline(
        TEXT_ONLY,
        admit_all(ScriptedEngine(thinking), talker),
        CHAT,
        512,
        SegmentSettings(),
        **SPEECH,
    )
    asked = ChatRequest("a", QUESTION, SamplingParams(), VOICE, tools=(Tool("look", "", {}),))
    events = [event async for event in pipeline.respond(asked)]
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert (shown, [request.text for request in talker.requests]) == ("Let me see.", [shown])
    finished = end_of(events)
    assert (finished.reason, finished.invalid_calls) == (end, 1)


async def test_an_answer_has_started_before_any_of_it_can_be_shown(
    cut_call: tuple[int, ...],
) -> None:
    released = asyncio.Event()

    async def thinking(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        yield ThinkerOutput(cut_call, 7, 0, 9)
        await released.wait()

    thinker = ScriptedEngine(thinking)
    pipeline = Pipeline(TEXT_ONLY, admit_all(thinker, None), CHAT, 512, SegmentSettings(), **SPEECH)
    asked = ChatRequest("a", QUESTION, SamplingParams(), tools=(Tool("look", "", {}),))
    async with aclosing(pipeline.respond(asked)) as events:
        assert await asyncio.wait_for(anext(events), 1) == Started()
