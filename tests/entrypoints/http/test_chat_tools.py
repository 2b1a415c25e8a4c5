"""Functions, thoughts, several choices, log probabilities and forms of a chat's answer."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import openai
import pytest

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.entrypoints.http.audio_transcript_cache import (
    LIFETIME_S,
    MemoryAudioTranscriptCache,
)
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableStream
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    Finished,
    Message,
    ReasoningDelta,
    Started,
    TextDelta,
    TextPart,
    ToolCalled,
    Usage,
)
from sglang_omni.protocol.errors import EngineFailed
from sglang_omni.protocol.tools import (
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolChoice,
    ToolResult,
)
from tests.entrypoints.http.fake import FakeBackend, hanging, playing

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {"name": "look", "description": "Look around.", "parameters": SCHEMA},
    }
]
NAMED = {"type": "function", "function": {"name": "look"}}


def allowed(mode: str) -> Any:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [NAMED]}}


CALLING = (
    TextDelta("Wait."),
    ToolCalled(ToolCall("look", '{"at": "mill"}')),
    ToolCalled(ToolCall("look", '{"at": "river"}')),
    Finished("stop", Usage(7, 0, 5)),
)


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(**{"model": "org/ming", "messages": HELLO, **fields})


def test_calls_of_functions_reach_the_official_client_and_come_back(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = playing(*CALLING)
    choice = ask(client, tools=TOOLS).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Wait."
    calls = choice.message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [
        {"at": "mill"},
        {"at": "river"},
    ]
    assert len({call.id for call in calls}) == 2
    assert backend.requests[-1].tools == (Tool("look", "Look around.", SCHEMA),)
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": f"{n} wheels"}
        for n, call in enumerate(calls)
    ]
    ask(client, tools=TOOLS, messages=[*HELLO, choice.message, *results])
    called = [ToolCall("look", call.function.arguments) for call in calls]
    assert backend.requests[-1].messages[1:] == (
        Message("assistant", (TextPart("Wait."), *called)),
        Message("tool", (ToolResult("0 wheels"),)),
        Message("tool", (ToolResult("1 wheels"),)),
    )


def test_streamed_calls_are_numbered(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = playing(*CALLING)
    chunks = list(ask(client, tools=TOOLS, stream=True))
    calls = [c for chunk in chunks for c in chunk.choices[0].delta.tool_calls or ()]
    assert [call.index for call in calls] == [0, 1]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


PIECES = ('{"at"', ': "m', "ill\u2028", '"}')
STREAMED: tuple[Event, ...] = (
    Started(),
    ToolCallStart("look"),
    *(ToolCallDelta(piece) for piece in PIECES),
    ToolCalled(ToolCall("look", "".join(PIECES))),
    ToolCallStart("look"),
    ToolCallDelta("{}"),
    ToolCalled(ToolCall("look", "{}")),
)


def test_a_streamed_call_is_its_name_and_then_its_arguments_as_they_come(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = playing(*STREAMED, Finished("stop", Usage(7, 0, 5)))
    chunks = list(ask(client, tools=TOOLS, tool_choice="required", stream=True))
    role, *calls = [chunk.choices[0].delta for chunk in chunks[:-1]]
    assert (role.role, role.tool_calls) == ("assistant", None)
    deltas = [call for delta in calls for call in delta.tool_calls]
    assert [(d.index, d.function.name, d.function.arguments) for d in deltas] == [
        (0, "look", ""),
        *((0, None, piece) for piece in PIECES),
        (1, "look", ""),
        (1, None, "{}"),
    ]
    first, second = (delta for delta in deltas if delta.id)
    assert (first.type, second.type) == ("function", "function")
    assert first.id != second.id
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_streamed_arguments_join_to_those_of_the_whole_answer(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = playing(*STREAMED, Finished("stop", Usage(7, 0, 5)))
    fields: Any = {"model": "org/ming", "messages": HELLO, "tools": TOOLS}
    with client.chat.completions.stream(**fields) as stream:
        streamed = stream.get_final_completion().choices[0]
    whole = ask(client, tools=TOOLS).choices[0]
    choices: list[Any] = [streamed, whole]
    for choice in choices:
        assert choice.finish_reason == "tool_calls"
        assert [call.function.arguments for call in choice.message.tool_calls] == [
            *("".join(PIECES), "{}"),
        ]


@pytest.mark.parametrize("ended", ["length", "stop"])
@pytest.mark.parametrize("complete", [0, 1])
def test_a_streamed_call_that_is_cut_is_counted_and_no_call_of_the_whole_answer(
    client: openai.OpenAI, backend: FakeBackend, ended: Any, complete: int
) -> None:
    cut = (ToolCallStart("look"), ToolCallDelta('{"at'))
    done = STREAMED[-3:] if complete else ()
    backend.script = playing(
        Started(), *done, *cut, Finished(ended, Usage(7, 0, 5), invalid_calls=1)
    )
    reason = "tool_calls" if complete and ended == "stop" else ended
    *before, last = (chunk.choices[0] for chunk in ask(client, tools=TOOLS, stream=True))
    assert (last.finish_reason, last.invalid_tool_calls) == (reason, 1)
    sent = [call for choice in before for call in choice.delta.tool_calls or ()]
    assert (sent[-1].index, sent[-1].function.arguments) == (complete, '{"at')
    whole = ask(client, tools=TOOLS).choices[0]
    assert (whole.finish_reason, whole.invalid_tool_calls) == (reason, 1)
    assert len(whole.message.tool_calls or ()) == complete
    assert whole.message.content is None


def test_an_answer_of_calls_alone_has_no_content(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = playing(*CALLING[1:])
    assert ask(client, tools=TOOLS).choices[0].message.content is None


@pytest.mark.parametrize(
    ("fields", "tools", "calling"),
    [
        ({}, 1, ToolChoice()),
        ({"tool_choice": "none"}, 0, ToolChoice()),
        ({"parallel_tool_calls": False}, 1, ToolChoice(parallel=False)),
        ({"tool_choice": "required"}, 1, ToolChoice(forced=True)),
        ({"tool_choice": NAMED}, 1, ToolChoice(forced=True, only=("look",), parallel=False)),
        ({"tool_choice": allowed("auto")}, 1, ToolChoice(only=("look",))),
        ({"tool_choice": allowed("required")}, 1, ToolChoice(forced=True, only=("look",))),
    ],
)
def test_what_may_and_must_be_called_is_told_to_the_pipeline(
    client: openai.OpenAI, backend: FakeBackend, fields: Any, tools: int, calling: ToolChoice
) -> None:
    ask(client, tools=TOOLS, **fields)
    asked = backend.requests[-1]
    assert (len(asked.tools), asked.tool_choice) == (tools, calling)


STRICT = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": True}}]


def test_a_strict_function_is_told_to_be_so(client: openai.OpenAI, backend: FakeBackend) -> None:
    ask(client, tools=STRICT)
    assert [tool.strict for tool in backend.requests[-1].tools] == [True]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": TOOLS, "tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": allowed("auto")}, "tool_choice"),
        ({"tools": STRICT}, "tools"),
        ({"tools": TOOLS, "response_format": {"type": "json_object"}}, "response_format"),
        (
            {"reasoning_effort": "low", "response_format": {"type": "json_object"}},
            "response_format",
        ),
    ],
)
def test_a_thinker_that_knows_schemas_alone_is_held_to_no_calls(
    http: httpx.Client,
    backend: FakeBackend,
    monkeypatch: pytest.MonkeyPatch,
    fields: Any,
    param: str,
) -> None:
    monkeypatch.setattr(type(backend), "supports_grammar", False)
    body = {"model": "org/ming", "messages": HELLO, **fields}
    refused = http.post("/v1/chat/completions", json=body).json()["error"]
    assert refused["param"] == param
    assert "llguidance" in refused["message"]


def test_thoughts_are_apart_from_the_answer_and_counted(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    said = (ReasoningDelta("A "), ReasoningDelta("plan."), TextDelta("Yes."))
    backend.script = playing(*said, Finished("stop", Usage(7, 0, 5, reasoning_tokens=3)))
    answer = ask(client, reasoning_effort="high")
    assert answer.choices[0].message.content == "Yes."
    assert answer.choices[0].message.reasoning_content == "A plan."
    assert answer.usage.completion_tokens_details.reasoning_tokens == 3
    assert backend.requests[-1].thinking
    deltas = [chunk.choices[0].delta for chunk in ask(client, stream=True)]
    told = [getattr(delta, "reasoning_content", None) for delta in deltas]
    assert [thought for thought in told if thought] == ["A ", "plan."]


@pytest.mark.parametrize(
    ("fields", "thinks"),
    [
        ({}, False),
        ({"reasoning_effort": "low"}, True),
        ({"reasoning_effort": "minimal"}, False),
        ({"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": False}}, False),
    ],
)
def test_thinking_is_switched_by_either_field(
    http: httpx.Client, backend: FakeBackend, fields: Any, thinks: bool
) -> None:
    body = {"model": "org/ming", "messages": HELLO, **fields}
    assert http.post("/v1/chat/completions", json=body).status_code == 200
    assert backend.requests[-1].thinking is thinks


def test_several_choices_share_a_prompt_and_have_seeds_of_their_own(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    answer = ask(client, n=3, seed=5, modalities=["text", "audio"], audio={"format": "wav"})
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.audio.id for choice in answer.choices}) == 3
    assert [request.sampling.seed for request in backend.requests] == [5, 6, 7]
    assert [request.voice.seed for request in backend.requests] == [5, 6, 7]
    assert len({request.id for request in backend.requests}) == 3
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (7, 3 * (5 + 4))


def test_streamed_choices_are_numbered_and_counted_together(client: openai.OpenAI) -> None:
    chunks = list(ask(client, n=2, stream=True, stream_options={"include_usage": True}))
    texts = {0: "", 1: ""}
    for chunk in chunks[:-1]:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == {0: "hello ", 1: "hello "}
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 2 * (5 + 4)


def test_one_choice_that_fails_fails_the_answer_and_stops_the_others(
    http: httpx.Client, backend: FakeBackend
) -> None:
    async def second_fails(request: ChatRequest) -> AsyncGenerator[Event, None]:
        if request.id.endswith("-1"):
            raise EngineFailed("the thinker died")
        yield TextDelta("a")
        await asyncio.sleep(3600)

    backend.script = second_fails
    body = {"model": "org/ming", "messages": HELLO, "n": 3}
    reply = http.post("/v1/chat/completions", json=body)
    assert reply.status_code == 500
    assert reply.json()["error"]["code"] == "engine_failed"
    backend.wait_running(0)


LIKELY = TokenLogprob(104, -0.25, ((104, -0.25), (72, float("-inf")), (0, -3.0)))


def test_log_probabilities_have_text_and_bytes(client: openai.OpenAI, backend: FakeBackend) -> None:
    end = TokenLogprob(0, -0.1)
    said = TextDelta("hi", (LIKELY, TokenLogprob(105, -0.5), end))
    backend.script = playing(said, Finished("stop", Usage()))
    choice = ask(client, logprobs=True, top_logprobs=3).choices[0]
    first, second = choice.logprobs.content
    assert (first.token, first.logprob, first.bytes) == ("h", -0.25, [104])
    assert [(top.token, top.logprob) for top in first.top_logprobs] == [
        ("h", -0.25),
        ("H", -9999.0),
        ("<0>", -3.0),
    ]
    assert second.token == "i"
    assert second.top_logprobs == []
    streamed = list(ask(client, logprobs=True, top_logprobs=3, stream=True))
    tokens = [c.choices[0].logprobs for c in streamed if c.choices[0].logprobs]
    assert [entry.token for one in tokens for entry in one.content] == ["h", "i"]
    assert backend.requests[-1].sampling.top_logprobs == 3


def test_without_logprobs_there_are_none(client: openai.OpenAI, backend: FakeBackend) -> None:
    assert "logprobs" not in ask(client).choices[0].to_dict()
    assert backend.requests[-1].sampling.top_logprobs is None


@pytest.mark.parametrize(
    ("form", "schema"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "object"}),
        ({"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}, SCHEMA),
    ],
)
def test_the_form_of_the_answer_reaches_the_thinker(
    client: openai.OpenAI, backend: FakeBackend, form: Any, schema: Any
) -> None:
    ask(client, response_format=form)
    asked = backend.requests[-1].sampling.json_schema
    assert (json.loads(asked) if asked else None) == schema


def test_a_thinker_without_grammars_keeps_to_no_schema(
    http: httpx.Client, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(backend), "has_grammars", False)
    body = {"model": "org/ming", "messages": HELLO, "response_format": {"type": "json_object"}}
    refused = http.post("/v1/chat/completions", json=body).json()["error"]
    assert refused["param"] == "response_format"
    assert "grammar" in refused["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_later_turn_cites_a_spoken_answer_by_its_id_alone(
    client: openai.OpenAI, backend: FakeBackend, stream: bool
) -> None:
    spoken: Any = {"modalities": ["text", "audio"], "audio": {"format": "pcm16"}}
    answer = ask(client, **spoken, stream=stream)
    if stream:
        deltas = [getattr(chunk.choices[0].delta, "audio", None) for chunk in answer]
        audio_id = next(audio["id"] for audio in deltas if audio)
    else:
        audio_id = answer.choices[0].message.audio.id
    cited = {"role": "assistant", "audio": {"id": audio_id}}
    ask(client, messages=[*HELLO, cited, {"role": "user", "content": "and then?"}])
    assert backend.requests[-1].messages[1] == Message("assistant", (TextPart("hello "),))


async def test_what_was_said_is_forgotten_in_time_by_size_and_for_others() -> None:
    now = [0.0]
    spoken = MemoryAudioTranscriptCache(max_characters=10, clock=lambda: now[0])
    assert await spoken.keep("ada", "a", "12345")
    assert await spoken.keep("ada", "b", "67890")
    assert await spoken.recall("ada", ["a"]) == {"a": "12345"}
    assert await spoken.recall("bob", ["a"]) == {}
    assert await spoken.keep("ada", "c", "1")
    assert await spoken.recall("ada", ["a", "b"]) == {"b": "67890"}
    now[0] = LIFETIME_S + 1.0
    assert await spoken.recall("ada", ["b"]) == {}
    assert not await spoken.keep("ada", "d", "x" * 11)
    assert await spoken.recall("ada", ["d"]) == {}


async def sent(reply: CancellableStream) -> list[bytes]:
    """The pieces of a reply's body; its headers go before them, once."""
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.append(dict(message))

    await reply({"type": "http"}, receive, send)
    start, *body = messages
    assert start["type"] == "http.response.start"
    assert start["status"] == 200
    assert {one["type"] for one in body} == {"http.response.body"}
    assert [one["more_body"] for one in body] == [True] * (len(body) - 1) + [False]
    return [one["body"] for one in body if one["body"]]


async def test_comments_keep_a_quiet_stream_alive() -> None:
    async def slow() -> AsyncGenerator[dict[str, Any], None]:
        await asyncio.sleep(0.05)
        yield {"n": 1}
        await asyncio.sleep(0.05)

    pieces = await sent(sse.SSEResponse(slow(), end=sse.DONE, keep_alive_s=0.02))
    assert pieces[0] == sse.KEEP_ALIVE
    assert pieces[-1] == sse.DONE
    assert [piece for piece in pieces if piece.startswith(b"data: {")] == [
        sse.encode_event({"n": 1})
    ]


async def test_an_error_after_a_comment_is_an_event() -> None:
    async def fails() -> AsyncGenerator[dict[str, Any], None]:
        await asyncio.sleep(0.05)
        raise EngineFailed("the thinker died")
        yield {}

    *quiet, last = await sent(sse.SSEResponse(fails(), end=sse.DONE, keep_alive_s=0.02))
    assert set(quiet) == {sse.KEEP_ALIVE}
    assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "engine_failed"


def test_closing_a_quiet_stream_stops_the_work(server: Any, backend: FakeBackend) -> None:
    backend.script = hanging(TextDelta("a"))
    body = {"model": "org/ming", "messages": HELLO, "stream": True, "n": 2}
    with (
        httpx.Client(base_url=server.url) as http,
        http.stream("POST", "/v1/chat/completions", json=body) as reply,
    ):
        next(reply.iter_lines())
    backend.wait_running(0)


def test_the_role_is_sent_as_soon_as_the_thinker_has_begun(
    server: Any, backend: FakeBackend
) -> None:
    """A call that is being written shows nothing; its client has headers and a first chunk."""
    backend.script = hanging(Started())
    body = {"model": "org/ming", "messages": HELLO, "tools": TOOLS, "stream": True}
    with (
        httpx.Client(base_url=server.url, timeout=2) as http,
        http.stream("POST", "/v1/chat/completions", json=body) as reply,
    ):
        first = json.loads(next(reply.iter_lines()).removeprefix("data: "))
        assert reply.status_code == 200
        assert first["choices"][0]["delta"]["role"] == "assistant"


def test_an_error_before_the_thinker_has_begun_is_a_status(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(then=EngineFailed("the thinker died"))
    body = {"model": "org/ming", "messages": HELLO, "stream": True}
    assert http.post("/v1/chat/completions", json=body).status_code == 500


CUT_CALLS: list[tuple[tuple[Event, ...], Any, str | None, str, int]] = [
    ((), "length", None, "length", 0),
    ((TextDelta("Wait."),), "length", "Wait.", "length", 0),
    ((ToolCalled(ToolCall("look", "{}")),), "length", None, "length", 1),
    ((), "stop", None, "stop", 0),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("shown", "ended", "content", "reason", "calls"), CUT_CALLS)
def test_a_call_that_is_none_is_counted(
    client: openai.OpenAI,
    backend: FakeBackend,
    shown: tuple[Event, ...],
    ended: Any,
    content: str | None,
    reason: str,
    calls: int,
    stream: bool,
) -> None:
    backend.script = playing(Started(), *shown, Finished(ended, Usage(7, 0, 5), invalid_calls=1))
    answer = ask(client, tools=TOOLS, stream=stream)
    if stream:
        *before, last = (chunk.choices[0] for chunk in answer)
        assert ("".join(one.delta.content or "" for one in before) or None) == content
        assert sum(len(one.delta.tool_calls or ()) for one in before) == calls
    else:
        last = answer.choices[0]
        assert (last.message.content, len(last.message.tool_calls or ())) == (content, calls)
    assert (last.finish_reason, last.invalid_tool_calls) == (reason, 1)


def test_an_answer_without_such_calls_has_no_count(client: openai.OpenAI) -> None:
    assert "invalid_tool_calls" not in ask(client).choices[0].to_dict()
