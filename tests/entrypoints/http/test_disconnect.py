"""A client that goes away ends its work; clients side by side do not disturb each other."""

import asyncio
import re
import socket
import time
from typing import Any, cast

import httpx
import openai
import pytest

from sglang_omni.pipeline.request import AudioDelta, TextDelta, TranscriptDelta
from tests.entrypoints.http.fake import FakeBackend, Served, echo, hanging, tone

USER = {"role": "user", "content": "hello"}
CHAT: dict[str, Any] = {"model": "org/ming", "messages": [USER]}
SPEECH = {"model": "org/ming", "input": "hello"}
SPOKEN = {"modalities": ["text", "audio"]}
REQUESTS = [
    pytest.param("/v1/chat/completions", CHAT, id="chat"),
    pytest.param("/v1/chat/completions", {**CHAT, **SPOKEN, "stream": True}, id="chat-stream"),
    pytest.param("/v1/audio/speech", SPEECH, id="speech"),
    pytest.param("/v1/audio/speech", {**SPEECH, "response_format": "pcm"}, id="speech-raw"),
    pytest.param("/v1/audio/speech", {**SPEECH, "stream_format": "sse"}, id="speech-sse"),
]
BEGINNING = (TextDelta("a"), TranscriptDelta("a"), AudioDelta(tone()))


def post_and_wait(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    with pytest.raises(httpx.ReadTimeout):
        client.post(path, json=body, timeout=0.2)


@pytest.mark.parametrize(("path", "body"), REQUESTS)
@pytest.mark.parametrize("events", [(), BEGINNING], ids=["before-an-event", "after-some"])
def test_a_client_that_goes_away_ends_its_work(
    server: Served, path: str, body: dict[str, Any], events: tuple[Any, ...]
) -> None:
    server.backend.script = hanging(*events)
    with httpx.Client(base_url=server.url) as client:
        post_and_wait(client, path, body)
    server.backend.wait_running(0)
    assert len(server.backend.requests) == 1


def test_closing_a_stream_of_the_official_client_ends_its_work(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = hanging(*BEGINNING)
    chunks = client.chat.completions.create(**CHAT, stream=True)
    next(chunks)
    assert backend.running == 1
    started = time.monotonic()
    chunks.close()
    backend.wait_running(0)
    assert time.monotonic() - started < 1


def test_a_client_that_goes_away_while_sending_starts_no_work(server: Served) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    head = b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head)
    with httpx.Client(base_url=server.url) as client:
        assert client.get("/health").status_code == 200
    assert server.backend.requests == []


def test_a_client_that_does_not_read_can_still_go_away(server: Served) -> None:
    async def endless(request: Any) -> Any:
        while True:
            yield AudioDelta(tone())
            await asyncio.sleep(0)

    server.backend.script = endless
    with (
        httpx.Client(base_url=server.url) as client,
        client.stream("POST", "/v1/audio/speech", json={**SPEECH, "stream_format": "audio"}),
    ):
        server.backend.wait_running(1)
        time.sleep(0.3)
    server.backend.wait_running(0)


def eight_requests() -> list[tuple[str, dict[str, Any]]]:
    """Chat and speech, whole and streamed; request i asks for i + 1 words `w<i>`."""
    mixed = []
    for index, parameters in enumerate((*REQUESTS, *REQUESTS[:3])):
        path, body = cast(tuple[str, dict[str, Any]], parameters.values)
        text = " ".join([f"w{index}"] * (index + 1))
        said: dict[str, Any] = (
            {"input": text} if "input" in body else {"messages": [{**USER, "content": text}]}
        )
        mixed.append((path, {**body, **said}))
    return mixed


def content(reply: httpx.Response) -> bytes | list[str]:
    """What was answered, without ids and times."""
    assert reply.status_code == 200
    is_chat = "chatcmpl" in reply.text
    return re.findall(r"w\d ", reply.text) if is_chat else reply.content


async def test_eight_mixed_requests_at_once_get_what_each_gets_alone(server: Served) -> None:
    together = asyncio.Event()

    async def wait_for_all(request: Any) -> Any:
        if server.backend.running == 8:
            together.set()
        await together.wait()
        async for event in echo(request):
            yield event

    async with httpx.AsyncClient(base_url=server.url, timeout=10) as client:
        alone = [content(await client.post(path, json=body)) for path, body in eight_requests()]
        await asyncio.to_thread(server.backend.wait_running, 0)
        server.backend.reset()
        server.backend.script = wait_for_all
        posts = [client.post(path, json=body) for path, body in eight_requests()]
        replies = await asyncio.gather(*posts)
    assert list(map(content, replies)) == alone
    assert len(set(map(str, alone))) == 8
    assert len({request.id for request in server.backend.requests}) == 8
    server.backend.wait_running(0)


async def test_one_client_going_away_leaves_the_others_alone(server: Served) -> None:
    server.backend.script = hanging(*BEGINNING)
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        create: Any = client.chat.completions.create
        first, second = [await create(**CHAT, stream=True) for _ in range(2)]
        await first.close()
        await asyncio.to_thread(server.backend.wait_running, 1)
        assert (await anext(aiter(second))).choices[0].delta.role == "assistant"
        await second.close()
    server.backend.wait_running(0)
