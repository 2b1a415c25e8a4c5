"""Limits of each key: refused in OpenAI's form, so that its client comes again by itself."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from sglang_omni.config.rate_limit_options import RateLimitOptions
from sglang_omni.entrypoints.api_keys import Keys, _digest
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.pipeline.request import Started, TextDelta
from sglang_omni.protocol.errors import EngineFailed
from tests.entrypoints.http.fake import USAGE, Served, hanging, playing, serving

ONE, OTHER = "a-key-of-one-user", "a-key-of-another"
CHATS = "/v1/chat/completions"
CHAT: dict[str, Any] = {
    "model": "org/ming",
    "messages": [{"role": "user", "content": "hello there"}],
    "max_tokens": 50,
}
TOTAL = USAGE.prompt_tokens + USAGE.completion_tokens + USAGE.audio_tokens


@contextmanager
def limited(has_keys: bool = True, **limits: int) -> Iterator[Served]:
    keys = Keys(tuple(map(_digest, (ONE, OTHER)))) if has_keys else Keys()
    with serving(Access(keys), rate_limits=RateLimitOptions(**limits)) as served:
        yield served


def ask(served: Served, key: str = ONE, path: str = CHATS, **changes: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{served.url}{path}", json={**CHAT, **changes}, headers=headers)


def test_requests_beyond_the_limit_are_refused_and_other_keys_are_served() -> None:
    with limited(requests_per_minute=2) as served:
        answers = [ask(served) for _ in range(3)]
        other = ask(served, OTHER)
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert other.status_code == 200
    error = answers[2].json()["error"]
    assert error["code"] == "rate_limit_exceeded"
    assert error["type"] == "requests"
    assert "2 requests per minute" in error["message"]
    headers = answers[2].headers
    assert 25_000 < int(headers["retry-after-ms"]) <= 30_000
    assert headers["retry-after"] == "30"
    assert len(served.backend.requests) == 3


def test_answers_say_what_is_left() -> None:
    with limited(requests_per_minute=10, tokens_per_minute=600) as served:
        whole, streamed = ask(served).headers, ask(served, stream=True).headers
    for headers in (whole, streamed):
        assert headers["x-ratelimit-limit-requests"] == "10"
        assert headers["x-ratelimit-limit-tokens"] == "600"
        assert headers["x-ratelimit-reset-requests"].endswith("s")
        assert headers["x-ratelimit-reset-tokens"].endswith("s")
    assert whole["x-ratelimit-remaining-requests"] == "9"
    assert streamed["x-ratelimit-remaining-requests"] == "8"
    # The one that is answered whole is corrected already, the streamed one still reserves.
    assert int(whole["x-ratelimit-remaining-tokens"]) >= 600 - TOTAL
    assert int(streamed["x-ratelimit-remaining-tokens"]) <= 600 - CHAT["max_tokens"]


def test_what_only_looks_is_not_counted() -> None:
    with limited(requests_per_minute=1) as served:
        for _ in range(3):
            for path in ("/v1/models", "/health", "/metrics"):
                headers = {"Authorization": f"Bearer {ONE}"}
                answer = httpx.get(f"{served.url}{path}", headers=headers)
                assert answer.status_code == 200
                assert "x-ratelimit-limit-requests" not in answer.headers
        assert ask(served).status_code == 200


def test_a_body_beyond_the_limit_is_not_read() -> None:
    """The refusal comes before a byte of the body was sent."""
    with limited(requests_per_minute=1) as served:
        ask(served)
        url = httpx.URL(served.url)
        with closing(socket.create_connection((url.host, url.port or 0), timeout=5)) as end:
            head = f"POST {CHATS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ONE}\r\n"
            head += "Content-Type: application/json\r\nContent-Length: 999\r\n\r\n"
            end.sendall(head.encode())
            assert b" 429 " in end.recv(65_536)


def test_without_keys_everybody_shares_the_limit() -> None:
    with limited(has_keys=False, requests_per_minute=1, tokens_per_minute=100) as served:
        assert ask(served, "sk-this").status_code == 200
        assert ask(served, "sk-that").status_code == 429


def test_unused_tokens_are_given_back() -> None:
    with limited(tokens_per_minute=100) as served:
        # Each reserves more than half of the limit.
        assert [ask(served).status_code for _ in range(3)] == [200] * 3


def test_tokens_that_were_used_are_missed() -> None:
    with limited(tokens_per_minute=100) as served:
        answers = [ask(served) for _ in range(5)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert answers[0].status_code == 200
    assert refused[0].json()["error"]["type"] == "tokens"
    assert 0 < int(refused[0].headers["retry-after-ms"]) <= 60_000


def test_responses_use_tokens_as_chats_do() -> None:
    with limited(tokens_per_minute=100) as served:
        headers = {"Authorization": f"Bearer {ONE}"}
        body = {"input": "hello there", "max_output_tokens": 50}
        url = f"{served.url}/v1/responses"
        answers = [httpx.post(url, json=body, headers=headers) for _ in range(5)]
        assert ask(served).status_code == 429
    refused = [answer for answer in answers if answer.status_code == 429]
    assert answers[0].status_code == 200
    assert refused[0].json()["error"]["type"] == "tokens"


def test_what_can_never_fit_says_so_and_is_not_tried_again() -> None:
    with limited(tokens_per_minute=40) as served:
        answer = ask(served)
        client = openai.OpenAI(base_url=f"{served.url}/v1", api_key=ONE, max_retries=2)
        with pytest.raises(openai.RateLimitError) as refused:
            client.chat.completions.create(**CHAT)
        headers = {"Authorization": f"Bearer {ONE}"}
        metrics = httpx.get(f"{served.url}/metrics", headers=headers).text
    assert answer.status_code == 429
    assert "max_tokens" in answer.json()["error"]["message"]
    assert "retry-after" not in answer.headers
    assert refused.value.code == "rate_limit_exceeded"
    assert 'sgl_omni_refusals_total{reason="rate_limit_tokens"} 2.0' in metrics


def test_a_broken_off_answer_costs_its_prompt_and_what_was_sent() -> None:
    with limited(tokens_per_minute=1000) as served:
        served.backend.script = hanging(Started(), TextDelta("a"), TextDelta("b"))
        headers = {"Authorization": f"Bearer {ONE}"}
        body = {**CHAT, "stream": True, "max_tokens": 900}
        with httpx.stream("POST", f"{served.url}{CHATS}", json=body, headers=headers) as answer:
            next(line for line in answer.iter_lines() if '"b"' in line)
        served.backend.wait_running(0)
        served.backend.reset()
        answer = ask(served)
    left = int(answer.headers["x-ratelimit-remaining-tokens"])
    assert 1000 - TOTAL - 20 < left <= 1000 - TOTAL


def test_an_answer_that_never_began_costs_nothing() -> None:
    with limited(tokens_per_minute=100) as served:
        served.backend.script = playing(then=EngineFailed("died"))
        assert [ask(served, max_tokens=90).status_code for _ in range(3)] == [500] * 3


def test_speech_and_every_choice_count() -> None:
    with limited(tokens_per_minute=100) as served:
        speech, headers = (
            {"model": "org/ming", "input": "a " * 200},
            {"Authorization": f"Bearer {ONE}"},
        )
        spoken = [
            httpx.post(f"{served.url}/v1/audio/speech", json=body, headers=headers)
            for body in (speech, {**speech, "input": "a " * 300})
        ]
        assert [answer.status_code for answer in spoken] == [200, 429]
        two = ask(served, n=2)
    assert two.status_code == 429


def draw(served: Served, **fields: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {ONE}"}
    body = {"prompt": "a mill", "resolution": 512, **fields}
    return httpx.post(f"{served.url}/v1/images/generations", json=body, headers=headers)


def test_images_reserve_their_tokens_and_give_back_what_they_did_not_use() -> None:
    with limited(tokens_per_minute=3000) as served:
        served.backend.capabilities = replace(served.backend.capabilities, image_output=True)
        # An image of 512 x 512 pixels reserves 1,024 tokens; the fake's has 15.
        answers = [draw(served, n=2) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200] * 3
        assert draw(served, n=3).status_code == 429
        assert len(served.backend.requests) == 3


def test_the_openai_client_comes_again_by_itself() -> None:
    with limited(requests_per_minute=60) as served:
        client = openai.OpenAI(base_url=f"{served.url}/v1", api_key=ONE, max_retries=2)
        for _ in range(60):
            assert ask(served).status_code == 200
        started = time.monotonic()
        answer = client.chat.completions.create(**CHAT)
        assert answer.choices[0].message.content
        assert time.monotonic() - started < 1.6


def test_as_many_requests_at_a_time_as_allowed() -> None:
    with limited(concurrent_requests=1) as served:
        served.backend.script = hanging(Started(), TextDelta("a"))
        headers = {"Authorization": f"Bearer {ONE}"}
        body = {**CHAT, "stream": True}
        with httpx.stream("POST", f"{served.url}{CHATS}", json=body, headers=headers) as answer:
            next(answer.iter_lines())
            refused = ask(served)
        served.backend.wait_running(0)
        served.backend.reset()
        assert ask(served).status_code == 200
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "concurrent_requests"
    assert refused.headers["retry-after-ms"] == "1000"


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/audio/speech/stream"])
def test_as_many_sessions_at_a_time_as_allowed(path: str) -> None:
    headers = {"Authorization": f"Bearer {ONE}"}
    with limited(concurrent_sessions=1) as served:
        url = served.url.replace("http", "ws") + path
        with connect(url, additional_headers=headers):
            with pytest.raises(InvalidStatus) as refused:
                connect(url, additional_headers=headers)
            with connect(url, additional_headers={"Authorization": f"Bearer {OTHER}"}):
                pass
        assert refused.value.response.status_code == 429
        assert b"concurrent_sessions" in refused.value.response.body
        deadline = time.monotonic() + 5
        while True:
            try:
                with connect(url, additional_headers=headers):
                    return
            except InvalidStatus:
                assert time.monotonic() < deadline
                time.sleep(0.05)


def test_responses_in_a_session_count_tokens_and_its_handshake_a_request() -> None:
    headers = {"Authorization": f"Bearer {ONE}"}
    with limited(requests_per_minute=1, tokens_per_minute=10) as served:
        url = served.url.replace("http", "ws") + "/v1/realtime"
        with connect(url, additional_headers=headers) as session:
            assert session.response is not None
            assert session.response.headers["x-ratelimit-remaining-requests"] == "0"
            session.send(json.dumps({"type": "response.create", "response": {"input": [_item()]}}))
            done = _until(session, "response.done")
            told = _until(session, "rate_limits.updated")
        assert ask(served).status_code == 429
    assert [(one["name"], one["limit"]) for one in told["rate_limits"]] == [
        ("requests", 1),
        ("tokens", 10),
    ]
    assert 0 < told["rate_limits"][0]["reset_seconds"] <= 60
    error = done["response"]["status_details"]["error"]
    assert done["response"]["status"] == "failed"
    assert error["code"] == "rate_limit_exceeded"


def _item() -> dict[str, Any]:
    content = [{"type": "input_text", "text": "hello"}]
    return {"type": "message", "role": "user", "content": content}


def _until(session: Any, kind: str) -> Any:
    while True:
        event = json.loads(session.recv(timeout=5))
        if event["type"] == kind:
            return event


def test_nothing_stands_in_the_way_without_limits() -> None:
    with limited() as served:
        headers = ask(served).headers
    assert not [name for name in headers if name.startswith("x-ratelimit")]
