"""A silent stream is kept open by comments, which commit its status."""

import json
from typing import Any

import httpx
import openai
import pytest

from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.pipeline.request import Started, TextDelta
from sglang_omni.protocol.errors import EngineFailed, Overloaded
from tests.entrypoints.http.fake import FakeBackend, Served, hanging, playing

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "look"}}]
CHAT: dict[str, Any] = {"model": "org/ming", "messages": HELLO, "stream": True}
FORCED = {**CHAT, "tools": TOOLS, "tool_choice": "required"}
SPEECH = {"model": "org/ming", "input": "hello", "stream_format": "sse"}
REQUESTS = [
    pytest.param("/v1/chat/completions", CHAT, id="chat"),
    pytest.param("/v1/chat/completions", FORCED, id="forced call"),
    pytest.param("/v1/audio/speech", SPEECH, id="speech"),
]


@pytest.fixture
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_S", 0.05)


@pytest.mark.usefixtures("short_pause")
@pytest.mark.parametrize(("path", "body"), REQUESTS)
def test_comments_flow_before_the_first_event(
    server: Served, path: str, body: dict[str, Any]
) -> None:
    server.backend.script = hanging()
    with (
        httpx.Client(base_url=server.url, timeout=5) as client,
        client.stream("POST", path, json=body) as reply,
    ):
        lines = reply.iter_lines()
        assert [next(lines) for _ in range(6)] == [": keep-alive", ""] * 3
        assert reply.status_code == 200
        assert server.backend.running == 1
    server.backend.wait_running(0)


@pytest.mark.usefixtures("short_pause")
def test_comments_flow_while_a_call_is_written_that_is_parsed_at_its_end(server: Served) -> None:
    server.backend.script = hanging(Started())
    body = {**CHAT, "tools": TOOLS}
    with (
        httpx.Client(base_url=server.url, timeout=5) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as reply,
    ):
        lines = (line for line in reply.iter_lines() if line)
        role = json.loads(next(lines).removeprefix("data: "))
        assert role["choices"][0]["delta"]["role"] == "assistant"
        assert [next(lines), next(lines)] == [": keep-alive"] * 2


@pytest.mark.usefixtures("short_pause")
@pytest.mark.parametrize("error", [Overloaded("full"), EngineFailed("the thinker died")], ids=str)
def test_an_error_after_the_first_comment_is_an_event(
    http: httpx.Client, client: openai.OpenAI, backend: FakeBackend, error: Exception
) -> None:
    backend.script = playing(TextDelta("late"), then=error, pause=0.2)
    reply = http.post("/v1/chat/completions", json=CHAT)
    assert reply.status_code == 200
    comment, *_, last = [line for line in reply.text.splitlines() if line]
    assert comment == ": keep-alive"
    assert json.loads(last.removeprefix("data: "))["error"]["message"]
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(**CHAT))


def test_an_error_before_the_first_comment_sets_the_status(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(then=Overloaded("full"), pause=0.2)
    assert http.post("/v1/chat/completions", json=CHAT).status_code == Overloaded.status
