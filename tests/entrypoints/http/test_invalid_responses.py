"""Bodies that `/v1/responses` refuses: each by its field, and none with a 500."""

import copy
import json
import random
from typing import Any

import httpx
import pytest

from tests.entrypoints.http.fake import FakeBackend
from tests.entrypoints.http.test_fuzz import RAW, mutated, places, send

PATH = "/v1/responses"
USER = {"role": "user", "content": "hello"}
CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "ok"}
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
# A body with a value at every place.
FULL: dict[str, Any] = {
    "model": "org/ming",
    "instructions": "be brief",
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "hello"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                {"type": "input_file", "file_data": "data:video/mp4;base64,AA==", "filename": "a"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": []},
        {
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
                {"type": "refusal", "refusal": "b"},
            ],
        },
        CALL,
        {**RESULT, "output": [{"type": "input_text", "text": "a"}]},
    ],
    "tools": [{**TOOL, "description": "a"}],
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "look"}],
    },
    "parallel_tool_calls": True,
    "text": {
        "format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}
    },
    "reasoning": {"effort": "low"},
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 2,
    "max_output_tokens": 20,
    "metadata": {"a": "b"},
    "store": False,
    "stream": True,
    "stream_options": {},
    "temperature": 0.5,
    "top_p": 0.5,
    "seed": 1,
    "stop": ["a"],
    "logit_bias": {"1": 2.0},
    "timeout": 50.0,
}


def refuse(http: httpx.Client, body: Any) -> dict[str, Any]:
    answer = http.post(PATH, json=body)
    assert answer.status_code == 400, answer.text
    error: dict[str, Any] = answer.json()["error"]
    return error


def with_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return a body with one part."""
    return {"input": [{"role": "user", "content": [part]}]}


def with_items(*items: dict[str, Any]) -> dict[str, Any]:
    """Return a body with these items."""
    return {"input": [*items]}


def with_format(**fields: Any) -> dict[str, Any]:
    """Return a body with a form of the text."""
    return {"text": {"format": fields}}


FILE = {"type": "input_file"}
IMAGE = {"type": "input_image"}
PDF = "data:application/pdf;base64,QQ=="
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "input"),
    ({"input": ""}, "input.0.content"),
    ({"input": []}, "input"),
    ({"input": None}, "input"),
    (with_items({"type": "reasoning", "summary": []}), "input"),
    (with_items({"role": "developer", "content": "a"}), "input"),
    (with_items(USER, {"role": "assistant", "content": "a"}), "input"),
    (with_items({"role": "user", "content": " "}), "input.0.content"),
    (with_items({"role": "user", "content": []}), "input.0.content"),
    (with_items({"role": "user"}), "input.0.content"),
    (with_items({"content": "a"}), "input.0.role"),
    (with_items({"type": None, "content": "a"}), "input.0.role"),
    (with_items({"role": "tool", "content": "a"}), "input.0.role"),
    (with_items({"type": "computer_call", "call_id": "a"}), "input.0.type"),
    (with_part({"type": "text", "text": "a"}), "input.0.content.0.type"),
    (with_part({"type": "input_text"}), "input.0.content.0.text"),
    (with_part({**IMAGE, "file_id": "f"}), "input.0.content.0.file_id"),
    (with_part(IMAGE), "input.0.content.0.image_url"),
    (with_part({**FILE, "filename": "a.mp3"}), "input.0.content.0"),
    (with_part({**FILE, "file_data": PDF}), "input.0.content.0"),
    (with_part({**FILE, "file_url": "http://[::1"}), "input.0.content.0"),
    (
        with_items({"role": "system", "content": [{**IMAGE, "image_url": "u"}]}, USER),
        "input.0.content",
    ),
    (with_items(USER, RESULT), "input.1.call_id"),
    (with_items(USER, {**CALL, "arguments": "[]"}, RESULT), "input.1.arguments"),
    (
        with_items(USER, CALL, {**RESULT, "output": [{**IMAGE, "image_url": "u"}]}),
        "input.2.output.0.type",
    ),
    ({"model": "other-model"}, "model"),
    ({"background": True}, "background"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt"),
    ({"tools": [{"type": "web_search"}]}, "tools.0"),
    ({"tools": [{"type": "mcp", "server_label": "a", "server_url": "b"}]}, "tools.0"),
    ({"tools": [{**TOOL, "name": "a b"}]}, "tools.0.name"),
    ({"tools": [{**TOOL, "parameters": {"type": "string"}}]}, "tools.0.parameters"),
    ({"tools": [{**TOOL, "parameters": {"$ref": "#"}}]}, "tools.0.parameters"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": {"type": "file_search"}}, "tool_choice.type"),
    ({"tool_choice": {"type": "function", "name": "a"}, "tools": [TOOL]}, "tool_choice"),
    (with_format(type="json_schema", name="a"), "text.format.schema"),
    (with_format(type="json_schema", name="a", schema={"$ref": "#"}), "text.format.schema"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"max_output_tokens": 10_000}, "max_output_tokens"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"include": ["everything"]}, "include.0"),
    ({"metadata": {"a": 1}}, "metadata.a"),
    ({"metadata": {str(number): "a" for number in range(17)}}, "metadata"),
    ({"previous_response_id": "resp_x"}, "previous_response_id"),
    ({"previous_response_id": "é" * 500}, "previous_response_id"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"input": "a\ud800"}, "input"),
    ({"metadata": {"\ud800": "a"}}, "metadata"),
    ({"instuctions": "a"}, "instuctions"),
]


@pytest.mark.parametrize(
    ("fields", "param"), REFUSED, ids=[f"{n}-{param}" for n, (_, param) in enumerate(REFUSED)]
)
def test_what_is_wrong_is_named(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, Any], param: str
) -> None:
    body = fields if "input" in fields or not fields else {"input": "hello", **fields}
    answer = http.post(PATH, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert answer.status_code == (404 if param == "model" else 400), answer.text
    assert answer.json()["error"]["param"] == param
    assert backend.requests == []


def test_a_typing_error_is_told_the_nearest_field(http: httpx.Client) -> None:
    assert (
        "did you mean 'instructions'?"
        in refuse(http, {"input": "a", "instuctions": "b"})["message"]
    )
    body = {"input": [{"role": "user", "contents": "a", "content": "b"}]}
    assert "did you mean 'content'?" in refuse(http, body)["message"]


def test_the_full_body_is_answered(http: httpx.Client) -> None:
    assert http.post(PATH, json=FULL).status_code == 200


PLACES = places(FULL)


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_a_wrong_type_at_each_place_is_refused(http: httpx.Client, path: tuple[Any, ...]) -> None:
    body = copy.deepcopy(FULL)
    holder: Any = body
    for step in path[:-1]:
        holder = holder[step]
    odd: list[Any] = [5.5, [[]], {"x": {}}, "\x00"]
    for wrong in odd:
        is_same = isinstance(wrong, type(holder[path[-1]]))
        if is_same or (wrong == 5.5 and isinstance(holder[path[-1]], (int, float))):
            continue
        kept, holder[path[-1]] = holder[path[-1]], wrong
        answer = http.post(PATH, json=body)
        holder[path[-1]] = kept
        assert answer.status_code == 400 or is_free(path, wrong), (wrong, answer.text)
        assert answer.status_code < 500


def is_free(path: tuple[Any, ...], wrong: Any) -> bool:
    """Whether other types are allowed: text for content, any JSON where it is not read here."""
    is_text = isinstance(wrong, str)
    texts = {"input", "content", "output", "stop", "reasoning", "tool_choice"}
    return (is_text and path[-1] in texts) or bool({"summary", "annotations", "schema"} & {*path})


@pytest.mark.parametrize("content", RAW, ids=range(len(RAW)))
def test_bodies_that_are_no_requests_are_refused(http: httpx.Client, content: bytes) -> None:
    send(http, PATH, content)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 40))]
)
def test_mutated_requests_are_served_or_refused(http: httpx.Client, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        send(http, PATH, json.dumps(mutated(FULL, chance)).encode())


def test_a_large_body_is_answered_and_refused_by_field(
    http: httpx.Client, backend: FakeBackend
) -> None:
    part = {**IMAGE, "image_url": f"data:image/png;base64,{'QUJD' * 100_000}"}
    text = {"type": "input_text", "text": "a"}
    body: dict[str, Any] = {"input": [{"role": "user", "content": [text, part]}]}
    first = http.post(PATH, json=body)
    assert first.status_code == 200, first.text
    follow = {"input": "b", "previous_response_id": first.json()["id"]}
    assert http.post(PATH, json=follow).status_code == 200
    assert backend.requests[-1].media[0].sources == (part["image_url"],)
    assert refuse(http, {**body, "storre": 1})["param"] == "storre"
    assert refuse(http, {**body, "top_p": "a"})["param"] == "top_p"
