"""The events of a streamed response, its failures, and clients that leave it."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.pipeline.request import (
    Finished,
    ReasoningDelta,
    Started,
    TextDelta,
    ToolCalled,
    Usage,
)
from sglang_omni.protocol.errors import ContextExceeded, EngineFailed, InvalidRequest, Overloaded
from sglang_omni.protocol.tools import ToolCall, ToolCallDelta, ToolCallStart
from tests.entrypoints.http.fake import FakeBackend, Served, hanging, playing

BODY: dict[str, Any] = {"model": "org/ming", "input": "hello", "stream": True}
END = Finished("stop", Usage(7, 3, 5))
OFFICIAL: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def read_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream, each checked: its name, its number and its official form."""
    name, number = "", 0
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            event = json.loads(value)
            assert event["type"] == name
            assert event["sequence_number"] == number
            OFFICIAL.validate_python(event)
            yield event
            number += 1
        else:
            assert line in ("", ": keep-alive")


def stream(http: httpx.Client, **fields: Any) -> list[dict[str, Any]]:
    with http.stream("POST", "/v1/responses", json={**BODY, **fields}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(read_events(answer.iter_lines()))


def types_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def test_the_events_of_a_text(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = playing(Started(), TextDelta("17\u2028 "), TextDelta(""), TextDelta('"é'), END)
    events = stream(http)
    assert types_of(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["delta"] for event in events[4:6]] == ["17\u2028 ", '"é']
    assert events[6]["text"] == '17\u2028 "é'
    item_ids = {event.get("item_id") or event["item"]["id"] for event in events[2:9]}
    assert len(item_ids) == 1
    response = events[-1]["response"]
    assert response["output"] == [events[-2]["item"]]
    assert response["status"] == "completed"
    assert response["usage"]["total_tokens"] == 12
    assert (events[0]["response"]["status"], events[0]["response"]["output"]) == ("in_progress", [])


def test_arguments_come_as_they_are_written(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = playing(
        ToolCallStart("look"),
        ToolCallDelta('{"at": '),
        ToolCallDelta('"mill"}'),
        ToolCalled(ToolCall("look", '{"at": "mill"}')),
        END,
    )
    events = stream(http)
    assert types_of(events)[2:] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    deltas = [event["delta"] for event in events if event["type"].endswith("arguments.delta")]
    (item,) = events[-1]["response"]["output"]
    assert item["arguments"] == "".join(deltas) == '{"at": "mill"}'


def test_a_call_that_is_cut_is_no_part_of_the_response(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(
        TextDelta("Wait."),
        ToolCallStart("look"),
        ToolCallDelta('{"at": '),
        Finished("length", Usage(7, 3, 5), invalid_calls=1),
    )
    events = stream(http)
    assert events[-2]["item"]["status"] == "incomplete"
    response = events[-1]["response"]
    assert response["status"] == "incomplete"
    assert [item["type"] for item in response["output"]] == ["message"]
    assert response["invalid_tool_calls"] == 1
    whole = http.post("/v1/responses", json={**BODY, "stream": False}).json()
    assert [item["type"] for item in whole["output"]] == ["message"]


def test_the_events_of_reasoning_and_calls(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = playing(
        ReasoningDelta("Hm."),
        TextDelta("Wait."),
        ToolCalled(ToolCall("look", '{"at": "mill"}')),
        TextDelta("\n"),
        END,
    )
    events = stream(http)
    assert types_of(events)[2:] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    added = [event for event in events if event["type"] == "response.output_item.added"]
    done = [event for event in events if event["type"] == "response.output_item.done"]
    assert [event["output_index"] for event in added] == [0, 1, 2]
    assert [event["item"]["id"] for event in added] == [event["item"]["id"] for event in done]
    assert (added[2]["item"]["arguments"], added[2]["item"]["status"]) == ("", "in_progress")
    assert events[-3]["arguments"] == events[-4]["delta"] == '{"at": "mill"}'
    assert events[-1]["response"]["output"] == [event["item"] for event in done]


def test_a_stream_is_the_same_response(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = playing(
        ReasoningDelta("Hm."), TextDelta("a "), TextDelta("b"), Finished("length", Usage(7, 0, 5))
    )
    events = stream(http, store=False)
    whole = http.post("/v1/responses", json={**BODY, "stream": False, "store": False}).json()
    assert events[-1]["type"] == "response.incomplete"

    def without_ids(response: dict[str, Any]) -> dict[str, Any]:
        output = [{**item, "id": ""} for item in response["output"]]
        return {**response, "id": "", "created_at": 0, "output": output}

    assert without_ids(events[-1]["response"]) == without_ids(whole)


def test_log_probabilities_are_in_the_events(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = playing(
        TextDelta("H", (TokenLogprob(72, -0.5),)), TextDelta("I", (TokenLogprob(73, -1.5),)), END
    )
    events = stream(http, include=["message.output_text.logprobs"])
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert [entry["token"] for event in deltas for entry in event["logprobs"]] == ["H", "I"]
    assert [entry["logprob"] for entry in events[-4]["logprobs"]] == [-0.5, -1.5]


def test_the_official_client_follows_a_stream(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = playing(
        ReasoningDelta("Hm."), TextDelta("a "), TextDelta("b"), ToolCalled(ToolCall("f", "{}")), END
    )
    with client.responses.stream(model="org/ming", input="hello") as events:
        texts = [event.delta for event in events if event.type == "response.output_text.delta"]
        final = events.get_final_response()
    assert texts == ["a ", "b"]
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]


IMAGE = "content.0.image_url.url"
EARLY: list[tuple[Exception, int, str | None, str]] = [
    (Overloaded("full"), 429, None, "full"),
    (ContextExceeded("shorten the messages", param="messages"), 400, "input", "shorten"),
    (
        InvalidRequest(f"messages.0.{IMAGE}: no image", param=f"messages.0.{IMAGE}"),
        400,
        f"input.0.{IMAGE}",
        f"input.0.{IMAGE}: no image",
    ),
    (
        InvalidRequest("response_format: no", param="response_format"),
        400,
        "text.format",
        "text.format: no",
    ),
    (InvalidRequest("not a role", param="messages[0].role"), 400, "input.0.role", "not a role"),
]


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(("error", "status", "param", "text"), EARLY, ids=lambda v: str(v)[:40])
def test_an_error_before_the_first_event_is_one_of_http(
    http: httpx.Client,
    backend: FakeBackend,
    error: Exception,
    status: int,
    param: str | None,
    text: str,
    is_streamed: bool,
) -> None:
    backend.script = playing(then=error)
    answer = http.post("/v1/responses", json={**BODY, "stream": is_streamed})
    assert answer.status_code == status
    assert answer.json()["error"]["param"] == param
    assert answer.json()["error"]["message"].startswith(text)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineFailed("the thinker failed"), "server_error"),
        (RuntimeError("a secret"), "server_error"),
        (Overloaded("full"), "rate_limit_exceeded"),
        (InvalidRequest("bad"), "invalid_prompt"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_later_error_is_an_event(
    http: httpx.Client, backend: FakeBackend, error: Exception, code: str
) -> None:
    backend.script = playing(TextDelta("17 +"), then=error)
    events = stream(http)
    assert events[-1]["type"] == "response.failed"
    response = events[-1]["response"]
    assert (response["status"], response["error"]["code"]) == ("failed", code)
    assert "secret" not in response["error"]["message"]
    assert response["output"][0]["status"] == "incomplete"
    assert http.get(f"/v1/responses/{response['id']}").status_code == 404


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_client_that_leaves_ends_the_work_and_nothing_is_stored(
    http: httpx.Client, server: Served, is_streamed: bool
) -> None:
    server.backend.script = hanging(Started(), TextDelta("a"))
    with httpx.Client(base_url=server.url) as leaving, pytest.raises(httpx.ReadTimeout):
        leaving.post("/v1/responses", json={**BODY, "stream": is_streamed}, timeout=0.2)
    server.backend.wait_running(0)
    response_id = f"resp_{server.backend.requests[-1].id}"
    assert http.get(f"/v1/responses/{response_id}").status_code == 404


def test_closing_a_stream_of_the_official_client_ends_the_work(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = hanging(Started(), TextDelta("a"))
    events = client.responses.create(model="org/ming", input="hello", stream=True)
    first = next(iter(events))
    assert first.type == "response.created"
    assert isinstance(first.response, Response)
    assert backend.running == 1
    events.close()
    backend.wait_running(0)
