"""Forms of a chat's answer on the running server, with the official client."""

import json
import os
import time
from typing import Any

import openai
import pytest

from tests.server.running import RunningServer, call


@pytest.fixture
def client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api, api_key="none", max_retries=0)


def test_a_chat_keeps_to_a_schema_and_tells_its_probabilities(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"count": {"enum": [1, 2, 3]}},
        "required": ["count"],
        "additionalProperties": False,
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "count", "schema": schema}}
    answer = client.chat.completions.create(
        model="ming-omni",
        messages=[{"role": "user", "content": "How many apples?"}],
        response_format=form,
        logprobs=True,
        top_logprobs=2,
        max_tokens=60,
        n=2,
    )
    for choice in answer.choices:
        assert json.loads(choice.message.content or "")["count"] in (1, 2, 3)
        assert choice.logprobs is not None
        assert choice.logprobs.content
        assert "".join(t.token for t in choice.logprobs.content) == choice.message.content


def test_a_chat_may_be_offered_functions(client: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    answer = client.chat.completions.create(
        model="ming-omni",
        messages=[{"role": "user", "content": "Look around."}],
        tools=tools,
        max_tokens=12,
        frequency_penalty=0.5,
    )
    assert answer.choices[0].finish_reason in ("length", "stop", "tool_calls")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 60


def test_a_call_that_is_cut_off_is_no_content_and_its_stream_opens_at_once(
    client: openai.OpenAI,
) -> None:
    parameters = {
        "type": "object",
        "properties": {"at": {"type": "string", "minLength": 500}},
        "required": ["at"],
    }
    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": parameters}}]
    asked: Any = {
        "model": "ming-omni",
        "messages": [{"role": "user", "content": "Look around."}],
        "tools": tools,
        "tool_choice": "required",
        "max_tokens": 60,
    }
    whole = client.chat.completions.create(**asked).choices[0]
    assert (whole.message.content, whole.message.tool_calls) == (None, None)
    assert (whole.finish_reason, whole.invalid_tool_calls) == ("length", 1)
    began, at = time.monotonic(), []
    chunks = []
    for chunk in client.chat.completions.create(**asked, stream=True):
        at.append(time.monotonic() - began)
        chunks.append(chunk.choices[0])
    role, begun, *deltas, end = chunks
    assert (role.delta.role, role.delta.content) == ("assistant", "")
    (call_start,) = begun.delta.tool_calls
    assert (call_start.function.name, call_start.function.arguments) == ("look", "")
    sent = [piece.function.arguments for one in deltas for piece in one.delta.tool_calls]
    assert "".join(sent).startswith('{"at": "')
    assert len(sent) > 10
    assert (end.finish_reason, end.invalid_tool_calls) == ("length", 1)
    # The role comes with the first token, the end with the sixtieth.
    assert at[0] < at[-1] / 2


def test_a_forced_call_streams_the_arguments_of_the_whole_answer(client: openai.OpenAI) -> None:
    parameters = {
        "type": "object",
        "properties": {"at": {"enum": ["the old mill by the river"]}, "n": {"type": "integer"}},
        "required": ["at", "n"],
    }
    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": parameters}}]
    asked: Any = {
        "model": "ming-omni",
        "messages": [{"role": "user", "content": "Look around."}],
        "tools": tools,
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "max_tokens": 200,
        "temperature": 0,
    }
    whole = client.chat.completions.create(**asked).choices[0]
    (called,) = whole.message.tool_calls
    assert whole.finish_reason == "tool_calls"
    # A model of random weights writes digits as long as it may.
    assert len(str(abs(json.loads(called.function.arguments)["n"]))) <= 20
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**asked, stream=True)]
    pieces = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
    assert "".join(piece.function.arguments for piece in pieces) == called.function.arguments
    assert len(pieces) > 3
    assert chunks[-1].finish_reason == "tool_calls"


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"$ref": "#"}, "response_format.json_schema.schema"),
    (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        "response_format.json_schema.schema",
    ),
    ({"type": "array", "minItems": 10**9}, "response_format.json_schema.schema"),
    (
        {"type": "integer", "multipleOf": 999999937, "minimum": 10**30, "maximum": 10**31},
        "response_format.json_schema.schema",
    ),
    # What only compiling them shows.
    ({"type": "integer", "multipleOf": 999999937}, "response_format"),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "response_format"),
]


def test_schemas_that_no_answer_fits_are_refused_and_nobody_else_notices(
    client: openai.OpenAI, server: RunningServer
) -> None:
    secret = "nobody-logs-this"
    engines = {name: server.engine(name) for name in ("thinker", "grammar")}
    server.log.seek(0, os.SEEK_END)
    body = {"model": "ming-omni", "messages": [{"role": "user", "content": "Hello."}]}
    beside, thread = call(f"{server.api}/chat/completions", {**body, "max_tokens": 60})
    for schema, param in HOSTILE:
        named: Any = {"name": "answer", "schema": {**schema, "title": secret}}
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(
                model="ming-omni",
                messages=[{"role": "user", "content": "Hello."}],
                response_format={"type": "json_schema", "json_schema": named},
            )
        assert refused.value.param == param
    thread.join()
    assert beside.status == 200
    for name, before in engines.items():
        after = server.engine(name)
        assert (after["pid"], after["restarts"]) == (before["pid"], before["restarts"])
    assert secret not in server.log.read()
