"""Tokens of texts and chats, and the text of tokens."""

from typing import Any

import httpx
import pytest

from sglang_omni.protocol.tokenization import MAX_TEXTS
from tests.entrypoints.http.fake import FakeBackend

QUESTION = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "look"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}


@pytest.mark.parametrize("path", ["/tokenize", "/v1/tokenize"])
def test_a_text_is_tokenized(http: httpx.Client, path: str) -> None:
    reply = http.post(path, json={"prompt": "hi"})
    expected = {"count": 2, "max_model_len": 32_768, "tokens": [104, 105], "token_strs": None}
    assert (reply.status_code, reply.json()) == (200, expected)


def test_an_empty_text_has_no_tokens(http: httpx.Client) -> None:
    assert http.post("/tokenize", json={"prompt": ""}).json()["tokens"] == []


def test_several_texts_are_tokenized_as_sglang_does(http: httpx.Client) -> None:
    body = {"prompt": ["hi", "a"], "return_token_strs": True}
    answer = http.post("/tokenize", json=body).json()
    assert (answer["count"], answer["tokens"]) == ([2, 1], [[104, 105], [97]])
    assert answer["token_strs"] == [["<104>", "<105>"], ["<97>"]]


def test_a_chat_is_tokenized_with_its_tools(http: httpx.Client) -> None:
    body: dict[str, Any] = {"messages": [QUESTION], "return_token_strs": True}
    answer = http.post("/tokenize", json=body).json()
    assert (answer["tokens"], answer["token_strs"]) == ([104, 105], ["<104>", "<105>"])
    assert http.post("/tokenize", json={**body, "tools": [TOOL]}).json()["count"] == 6
    unused = {**body, "tools": [TOOL], "tool_choice": "none"}
    assert http.post("/tokenize", json=unused).json()["count"] == 2


@pytest.mark.parametrize("path", ["/detokenize", "/v1/detokenize"])
@pytest.mark.parametrize(("skip", "text"), [(False, "h<0>i"), (True, "hi")])
def test_tokens_become_text(http: httpx.Client, path: str, skip: bool, text: str) -> None:
    body = {"tokens": [104, 0, 105], "skip_special_tokens": skip}
    reply = http.post(path, json=body)
    assert (reply.status_code, reply.json()) == (200, {"prompt": text, "text": text})


def test_no_tokens_are_no_text(http: httpx.Client) -> None:
    assert http.post("/detokenize", json={"tokens": []}).json()["prompt"] == ""


def test_broken_characters_are_replaced(http: httpx.Client) -> None:
    assert http.post("/detokenize", json={"tokens": [0xC3, 104]}).json()["prompt"] == "\ufffdh"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("tokenize", {}, None),
        ("tokenize", {"prompt": "a", "messages": [QUESTION]}, None),
        ("tokenize", {"prompt": 7}, "prompt"),
        ("tokenize", {"prompt": ["a", 7]}, "prompt"),
        ("tokenize", {"prompt": ["a"] * (MAX_TEXTS + 1)}, "prompt"),
        ("tokenize", {"messages": []}, "messages"),
        ("tokenize", {"messages": [{**QUESTION, "content": [IMAGE]}]}, "messages.0.content.0"),
        ("tokenize", {"messages": [{"role": "system", "content": "a"}]}, "messages"),
        ("tokenize", {"messages": [QUESTION], "tool_choice": "required"}, "tool_choice"),
        ("detokenize", {}, "tokens"),
        ("detokenize", {"tokens": "a"}, "tokens"),
        ("detokenize", {"tokens": [True]}, "tokens"),
        ("detokenize", {"tokens": [[1]]}, "tokens"),
        ("detokenize", {"tokens": [104, 256]}, "tokens.1"),
        ("detokenize", {"tokens": [-1]}, "tokens.0"),
    ],
    ids=str,
)
def test_a_bad_body_is_refused(
    http: httpx.Client, path: str, body: dict[str, Any], param: str | None
) -> None:
    reply = http.post(f"/{path}", json=body)
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("path", "body"), [("tokenize", {"prompt": "a"}), ("detokenize", {"tokens": [104]})]
)
def test_another_model_is_not_found(http: httpx.Client, path: str, body: dict[str, Any]) -> None:
    assert http.post(f"/{path}", json={**body, "model": "o3"}).status_code == 404


def test_a_text_far_over_the_context_is_refused_before_it_is_tokenized(
    http: httpx.Client, backend: FakeBackend
) -> None:
    limit = 8 * backend.context_length
    assert http.post("/tokenize", json={"prompt": "a" * limit}).json()["count"] == limit
    error = http.post("/tokenize", json={"prompt": "a" * (limit + 1)}).json()["error"]
    assert (error["param"], error["code"]) == ("prompt", "context_length_exceeded")
