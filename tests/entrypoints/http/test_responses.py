"""`POST /v1/responses`: what the model is asked, and the response that the client gets."""

import json
from typing import Any

import httpx
import openai
import pydantic
import pytest
from openai.types.responses import Response

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.pipeline.request import (
    Finished,
    MediaPart,
    Message,
    ReasoningDelta,
    Started,
    TextDelta,
    TextPart,
    ToolCalled,
    Usage,
)
from sglang_omni.protocol.tools import Tool, ToolCall, ToolChoice, ToolResult
from tests.entrypoints.http.fake import FakeBackend, playing

IMAGE = "data:image/png;base64,QUJD"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "string"}}}
TOOL: dict[str, Any] = {
    "type": "function",
    "name": "look",
    "description": "Look around.",
    "parameters": SCHEMA,
    "strict": False,
}
CALLING = (
    Started(),
    TextDelta("Wait."),
    ToolCalled(ToolCall("look", '{"at": "mill"}')),
    TextDelta("\n"),
    ToolCalled(ToolCall("look", '{"at": "river"}')),
    Finished("stop", Usage(7, 0, 5)),
)


def ask(client: openai.OpenAI, **fields: Any) -> Response:
    """Return a response whose form the official types have checked."""
    fields = {"model": "org/ming", "input": "hello", **fields}
    raw = client.responses.with_raw_response.create(**fields)
    return Response.model_validate(json.loads(raw.text))


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, TextPart))


def user(text: str) -> Message:
    return Message("user", (TextPart(text),))


def test_a_text_is_answered_in_the_official_form(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = playing(
        TextDelta("17 + 25 "), TextDelta("= 42"), Finished("stop", Usage(7, 3, 5))
    )
    answer = ask(client, input="17 + 25?", metadata={"run": "7"}, temperature=0.5)
    assert answer.output_text == "17 + 25 = 42"
    assert (answer.status, answer.error, answer.incomplete_details) == ("completed", None, None)
    (message,) = answer.output
    assert message.type == "message"
    assert (message.status, message.role) == ("completed", "assistant")
    assert answer.usage is not None
    assert answer.usage.model_dump() == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }
    assert (answer.metadata, answer.temperature) == ({"run": "7"}, 0.5)
    assert backend.requests[-1].messages == (user("17 + 25?"),)


def test_settings_of_the_request_reach_the_thinker(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    answer = ask(
        client,
        max_output_tokens=9,
        top_p=0.5,
        reasoning={"effort": "low"},
        service_tier="flex",
        tools=[TOOL],
        tool_choice={"type": "function", "name": "look"},
        extra_body={"seed": 3, "top_k": 4, "stop": "x", "timeout": 60, "min_p": 0.1},
    )
    request = backend.requests[-1]
    sampling = request.sampling
    assert (sampling.max_tokens, sampling.top_p, sampling.top_k) == (9, 0.5, 4)
    assert (sampling.seed, sampling.stop, sampling.min_p) == (3, ("x",), 0.1)
    assert (request.thinking, request.priority) == (True, "low")
    assert request.timeout_s <= 60
    assert request.tools == (Tool("look", "Look around.", SCHEMA),)
    assert request.tool_choice == ToolChoice(forced=True, only=("look",), parallel=False)
    assert answer.max_output_tokens == 9
    assert answer.service_tier == "flex"
    assert answer.tools[0].to_dict() == TOOL


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice()),
        ("required", ToolChoice(forced=True)),
        (
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "look"}],
            },
            ToolChoice(only=("look",)),
        ),
    ],
    ids=["auto", "required", "allowed"],
)
def test_choices_of_tools(
    client: openai.OpenAI, backend: FakeBackend, choice: Any, expected: ToolChoice
) -> None:
    ask(client, tools=[TOOL], tool_choice=choice)
    assert backend.requests[-1].tool_choice == expected
    ask(client, tools=[TOOL], tool_choice=choice, parallel_tool_calls=False)
    assert not backend.requests[-1].tool_choice.parallel


def test_messages_in_every_form(client: openai.OpenAI, backend: FakeBackend) -> None:
    ask(
        client,
        instructions="Be brief.",
        input=[
            {"role": "developer", "content": "Rhyme."},
            {"role": "user", "content": "hello"},
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []},
                    {"type": "refusal", "refusal": "!"},
                ],
            },
            {"role": "system", "content": [{"type": "input_text", "text": "Sing."}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"role": "assistant", "content": "Well."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and"}]},
        ],
    )
    assert backend.requests[-1].messages == (
        Message("system", (TextPart("Be brief.\n\nRhyme.\n\nSing."),)),
        user("hello"),
        Message("assistant", (TextPart("Hi"), TextPart("!"))),
        Message("assistant", (TextPart("Well."),)),
        user("and"),
    )


def test_media_of_every_kind(client: openai.OpenAI, backend: FakeBackend) -> None:
    parts = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": IMAGE, "detail": "low"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "input_file", "file_data": "data:audio/mpeg;base64,QUJD"},
        {"type": "input_file", "file_data": "QUJD", "filename": "a.mp4"},
        {"type": "input_file", "file_url": "https://example.com/a.png?x=1"},
    ]
    ask(client, input=[{"role": "user", "content": parts}])
    media = backend.requests[-1].media
    assert [(part.kind, part.sources) for part in media] == [
        ("image", (IMAGE,)),
        ("audio", ("data:audio/wav;base64,QUJD",)),
        ("audio", ("data:audio/mpeg;base64,QUJD",)),
        ("video", ("data:video/mp4;base64,QUJD",)),
        ("image", ("https://example.com/a.png?x=1",)),
    ]
    assert media[0].max_pixels == 512 * 512
    assert isinstance(backend.requests[-1].messages[0].content[1], MediaPart)


def test_calls_become_items(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = playing(*CALLING)
    answer = ask(client, tools=[TOOL])
    assert [item.type for item in answer.output] == ["message", "function_call", "function_call"]
    calls = [item for item in answer.output if item.type == "function_call"]
    assert [call.arguments for call in calls] == ['{"at": "mill"}', '{"at": "river"}']
    assert len({call.call_id for call in calls} | {call.id for call in calls}) == 4
    assert answer.output_text == "Wait."


@pytest.mark.parametrize("is_stored", [True, False], ids=["previous-response", "items-sent-back"])
def test_a_loop_of_calls(client: openai.OpenAI, backend: FakeBackend, is_stored: bool) -> None:
    backend.script = playing(ReasoningDelta("Hm."), *CALLING)
    first = ask(client, tools=[TOOL], store=is_stored)
    results: list[Any] = [
        {"type": "function_call_output", "call_id": item.call_id, "output": f"{item.arguments}!"}
        for item in first.output
        if item.type == "function_call"
    ]
    backend.script = playing(TextDelta("Two wheels."), Finished("stop", Usage(7, 0, 5)))
    if is_stored:
        answer = ask(client, input=results, previous_response_id=first.id, tools=[TOOL])
    else:
        hello = {"role": "user", "content": "hello"}
        answer = ask(client, input=[hello, *first.output, *results], tools=[TOOL], store=False)
    assert answer.output_text == "Two wheels."
    calls = (ToolCall("look", '{"at": "mill"}'), ToolCall("look", '{"at": "river"}'))
    assert backend.requests[-1].messages == (
        user("hello"),
        Message("assistant", (TextPart("Wait."), *calls)),
        Message("tool", (ToolResult('{"at": "mill"}!'),)),
        Message("tool", (ToolResult('{"at": "river"}!'),)),
    )


def test_an_output_of_parts_is_one_text(client: openai.OpenAI, backend: FakeBackend) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    output = {"type": "function_call_output", "call_id": "c", "output": parts}
    ask(client, input=[{"role": "user", "content": "hello"}, call, output])
    assert backend.requests[-1].messages[-1] == Message("tool", (ToolResult("ab"),))


class Place(pydantic.BaseModel):
    """Where something is."""

    at: str


def test_a_schema_is_kept_and_parsed(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = playing(TextDelta('{"at": "mill"}'), Finished("stop", Usage(7, 0, 5)))
    answer = client.responses.parse(model="org/ming", input="hello", text_format=Place)
    assert answer.output_parsed == Place(at="mill")
    schema = json.loads(backend.requests[-1].sampling.json_schema)
    assert schema["properties"]["at"]["type"] == "string"
    with client.responses.stream(model="org/ming", input="hello", text_format=Place) as stream:
        assert stream.get_final_response().output_parsed == Place(at="mill")
    ask(client, text={"format": {"type": "json_object"}})
    assert json.loads(backend.requests[-1].sampling.json_schema) == {"type": "object"}


def test_log_probabilities_come_with_the_text(client: openai.OpenAI, backend: FakeBackend) -> None:
    tokens = (TokenLogprob(72, -0.5, ((72, -0.5), (73, -1.5))), TokenLogprob(0, -0.1))
    backend.script = playing(TextDelta("H", tokens), Finished("stop", Usage(7, 0, 5)))
    answer = ask(client, include=["message.output_text.logprobs"], top_logprobs=2)
    assert backend.requests[-1].sampling.top_logprobs == 2
    assert answer.output[0].type == "message"
    part = answer.output[0].content[0]
    assert part.type == "output_text"
    assert part.logprobs is not None
    assert [(entry.token, entry.logprob, entry.bytes) for entry in part.logprobs] == [
        ("H", -0.5, [72])
    ]
    assert [entry.token for entry in part.logprobs[0].top_logprobs] == ["H", "I"]


def test_the_end_of_the_token_limit_is_told(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = playing(TextDelta("17 +"), Finished("length", Usage(7, 0, 5)))
    answer = ask(client)
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output[0].type == "message"
    assert answer.output[0].status == "incomplete"


def test_reasoning_is_an_item_of_its_own(client: openai.OpenAI, backend: FakeBackend) -> None:
    usage = Usage(7, 0, 5, reasoning_tokens=2)
    backend.script = playing(
        ReasoningDelta("Hm, "), ReasoningDelta("42."), TextDelta("42"), Finished("stop", usage)
    )
    answer = ask(client, reasoning={"effort": "high"})
    reasoning, message = answer.output
    assert reasoning.type == "reasoning"
    assert reasoning.content is not None
    assert [part.text for part in reasoning.content] == ["Hm, 42."]
    assert (reasoning.summary, message.type, answer.output_text) == ([], "message", "42")
    assert answer.usage is not None
    assert answer.usage.output_tokens_details.reasoning_tokens == 2


@pytest.mark.parametrize(("reason", "num_items"), [("stop", 1), ("length", 0)])
def test_an_empty_answer(
    client: openai.OpenAI, backend: FakeBackend, reason: Any, num_items: int
) -> None:
    backend.script = playing(Started(), Finished(reason, Usage(7), invalid_calls=1))
    answer = ask(client)
    assert len(answer.output) == num_items
    assert answer.output_text == ""
    assert answer.to_dict()["invalid_tool_calls"] == 1


IGNORED: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"truncation": "disabled", "background": False, "max_tool_calls": None}, ""),
    ({"truncation": "auto"}, "truncation"),
    ({"max_tool_calls": 5}, "max_tool_calls"),
    (
        {"user": "a", "safety_identifier": "b", "prompt_cache_key": "c"},
        "prompt_cache_key, safety_identifier, user",
    ),
    ({"text": {"verbosity": "low"}}, "text.verbosity"),
    ({"text": {"format": {"type": "text"}, "verbosity": "medium"}}, ""),
    ({"reasoning": {"effort": None, "summary": "auto"}}, "reasoning.summary"),
    ({"include": ["reasoning.encrypted_content"]}, "include.reasoning.encrypted_content"),
    ({"stream": True, "stream_options": {"include_obfuscation": False}}, ""),
    (
        {"stream": True, "stream_options": {"include_obfuscation": True}},
        "stream_options.include_obfuscation",
    ),
    ({"service_tier": "auto", "max_tokens": 5, "enable_thinking": True, "priority": 1}, ""),
    (
        {"input": [{"role": "user", "content": "a", "phase": "x"}], "ignore_eos": True},
        "ignore_eos, input.phase",
    ),
]


@pytest.mark.parametrize(("fields", "ignored"), IGNORED, ids=lambda value: str(value)[:60])
def test_fields_without_effect_are_told(
    http: httpx.Client, fields: dict[str, Any], ignored: str
) -> None:
    answer = http.post("/v1/responses", json={"input": "hello", **fields})
    assert answer.status_code == 200, answer.text
    assert answer.headers.get("x-ignored-fields", "") == ignored
