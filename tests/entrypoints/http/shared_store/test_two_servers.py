"""Two servers with one Redis: what a client has from one is known to the other."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints import api_keys
from sglang_omni.entrypoints.api_keys import read_keys
from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.state_stores import StateStores
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.pipeline.request import TextPart
from tests.entrypoints.http.fake import DrawingBackend, FakeBackend
from tests.entrypoints.http.shared_store.redis_server import RedisServer
from tests.entrypoints.http.shared_store.stores_under_test import open_shared
from tests.entrypoints.http.shared_store.test_redis import wait_until_up

SPOKEN = {"modalities": ["text", "audio"], "audio": {"format": "pcm16"}}


@dataclass(frozen=True)
class App:
    """A server without a network, and a client of it."""

    backend: FakeBackend
    stores: StateStores
    http: httpx.AsyncClient

    async def respond(self, text: str, **fields: Any) -> httpx.Response:
        return await self.http.post("/v1/responses", json={"input": text, **fields})

    async def chat(self, messages: list[Any], **fields: Any) -> httpx.Response:
        body = {"messages": messages, **fields}
        return await self.http.post("/v1/chat/completions", json=body)

    @property
    def asked(self) -> list[str]:
        """The texts of the last request's messages."""
        messages = self.backend.requests[-1].messages
        return [
            "".join(part.text for part in message.content if isinstance(part, TextPart))
            for message in messages
        ]


@asynccontextmanager
async def open_app(
    redis: RedisServer, prefix: str, access: Access | None = None
) -> AsyncGenerator[App, None]:
    """Yield a server that shares its state with those of the same prefix."""
    backend = DrawingBackend()
    recorder = TraceRecorder(lambda: backend.sample_rate)
    registry = recorder.metrics.registry
    async with open_shared(redis.url, registry, key_prefix=prefix) as (stores, _):
        app = create_app(backend, access, recorder=recorder, stores=stores)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
            yield App(backend, stores, http)


@asynccontextmanager
async def open_two(redis: RedisServer, prefix: str) -> AsyncGenerator[tuple[App, App], None]:
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(open_app(redis, prefix)),
            await stack.enter_async_context(open_app(redis, prefix)),
        )


def get_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_of_one_goes_on_at_the_other(
    shared_redis: RedisServer, stream: bool
) -> None:
    async with open_two(shared_redis, f"goes-on-{stream}") as (first, second):
        answer = await first.respond("one", stream=stream)
        assert answer.status_code == 200
        response_id = f"resp_{first.backend.requests[-1].id}"
        follow = await second.respond("two", previous_response_id=response_id)
        assert second.asked == ["one", "one ", "two"]
        follow_id = follow.json()["id"]
        assert (await first.respond("three", previous_response_id=follow_id)).status_code == 200
        assert first.asked == ["one", "one ", "two", "two ", "three"]
        assert (await first.http.get(f"/v1/responses/{follow_id}")).json() == follow.json()
        items = (await second.http.get(f"/v1/responses/{follow_id}/input_items")).json()["data"]
        assert len(items) == 3
        reference = {"type": "item_reference", "id": items[0]["id"]}
        assert (await first.respond([reference])).status_code == 200  # type: ignore[arg-type]
        assert (await second.http.delete(f"/v1/responses/{response_id}")).status_code == 200
        lost = await first.respond("four", previous_response_id=response_id)
        assert get_error(lost) == (400, "previous_response_not_found")


@pytest.mark.parametrize("stream", [False, True])
async def test_an_audio_id_of_one_is_known_to_the_other(
    shared_redis: RedisServer, stream: bool
) -> None:
    async with open_two(shared_redis, f"audio-{stream}") as (first, second):
        hello = {"role": "user", "content": "hello"}
        answer = await first.chat([hello], **SPOKEN, stream=stream)
        assert answer.status_code == 200
        audio_id = f"audio-{first.backend.requests[-1].id}"
        assert audio_id in answer.text
        cited = {"role": "assistant", "audio": {"id": audio_id}}
        answer = await second.chat([hello, cited, {"role": "user", "content": "and?"}])
        assert answer.status_code == 200
        assert second.asked == ["hello", "hello ", "and?"]


async def test_an_image_of_one_is_fetched_at_the_other(shared_redis: RedisServer) -> None:
    async with open_two(shared_redis, "image") as (first, second):
        body = {"prompt": "a mill", "response_format": "url"}
        answer = await first.http.post("/v1/images/generations", json=body)
        url = answer.json()["data"][0]["url"]
        image = await second.http.get(url)
        assert (image.status_code, image.headers["content-type"]) == (200, "image/png")
        assert image.content == (await first.http.get(url)).content


async def test_a_key_has_its_state_at_every_server_and_no_other_has(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYS", "first-key-0123456789,second-key-0123456789")
    mine, other = (
        {"Authorization": f"Bearer {name}-key-0123456789"} for name in ("first", "second")
    )
    hello = {"role": "user", "content": "hello"}
    access = Access(keys=read_keys(["env:KEYS"], "api_key"))
    async with open_app(shared_redis, "keys", access) as app:
        app.http.headers = mine
        response_id = (await app.respond("one")).json()["id"]
        audio = (await app.chat([hello], **SPOKEN)).json()["choices"][0]["message"]["audio"]
    # Another process has other digests of the same keys.
    monkeypatch.setattr(api_keys, "_SALT", bytes(16))
    access = Access(keys=read_keys(["env:KEYS"], "api_key"))
    cited = [hello, {"role": "assistant", "audio": {"id": audio["id"]}}, hello]
    async with open_app(shared_redis, "keys", access) as app:
        app.http.headers = other
        assert (await app.http.get(f"/v1/responses/{response_id}")).status_code == 404
        assert (await app.http.delete(f"/v1/responses/{response_id}")).status_code == 404
        answer = await app.respond("two", previous_response_id=response_id)
        assert get_error(answer) == (400, "previous_response_not_found")
        assert get_error(await app.chat(cited)) == (400, "invalid_value")
        app.http.headers = mine
        assert (await app.http.get(f"/v1/responses/{response_id}")).status_code == 200
        assert (await app.chat(cited)).status_code == 200


async def test_without_redis_answers_go_on_and_say_what_is_not_stored(
    own_redis: RedisServer,
) -> None:
    async with open_two(own_redis, "outage") as (first, second):
        hello = {"role": "user", "content": "hello"}
        stored = (await first.respond("one")).json()
        assert stored["store"] is True
        spoken = (await first.chat([hello], **SPOKEN)).json()["choices"][0]["message"]["audio"]
        cited = [hello, {"role": "assistant", "audio": {"id": spoken["id"]}}, hello]
        own_redis.kill()
        for app in (first, second):
            # What needs the state fails, and is worth a retry.
            answer = await app.respond("two", previous_response_id=stored["id"])
            assert get_error(answer) == (503, "shared_store_unavailable")
            assert answer.headers["Retry-After"] == "1"
            path = f"/v1/responses/{stored['id']}"
            for lost in (
                await app.http.get(path),
                await app.http.delete(path),
                await app.http.get(f"{path}/input_items"),
                await app.chat(cited),
            ):
                assert get_error(lost) == (503, "shared_store_unavailable")
            # What would only be stored is answered, and says that it is not.
            answer = await app.respond("three")
            assert (answer.status_code, answer.json()["store"]) == (200, False)
            whole = await app.chat([hello], **SPOKEN)
            audio = whole.json()["choices"][0]["message"]["audio"]
            assert audio["expires_at"] - whole.json()["created"] < 60
            assert (await app.respond("four", stream=True)).text.count('"store":false') == 1
            # A transcript that the client sends itself needs no store.
            itself = {"role": "assistant", "audio": {"id": "x", "transcript": "hello "}}
            assert (await app.chat([hello, itself, hello])).status_code == 200
            assert (await app.http.get("/ready")).status_code == 200
            health = (await app.http.get("/health")).json()
            assert health["shared_store"]["state"] == "unavailable"
            assert "sgl_omni_shared_store_up 0.0" in (await app.http.get("/metrics")).text
        own_redis.start()
        for app in (first, second):
            await wait_until_up(app.stores)
            assert (await app.http.get("/health")).json()["shared_store"]["state"] == "ready"
        # This Redis has lost what was in it, which is another error than its absence.
        answer = await second.respond("five", previous_response_id=stored["id"])
        assert get_error(answer) == (400, "previous_response_not_found")
        stored = (await first.respond("one")).json()
        assert stored["store"] is True
        answer = await second.respond("two", previous_response_id=stored["id"])
        assert answer.status_code == 200
        assert second.asked == ["one", "one ", "two"]


async def test_an_image_that_cannot_be_stored_has_no_url(own_redis: RedisServer) -> None:
    async with open_app(own_redis, "image") as app:
        own_redis.kill()
        body = {"prompt": "a mill", "response_format": "url"}
        answer = await app.http.post("/v1/images/generations", json=body)
        assert get_error(answer) == (503, "shared_store_unavailable")
        answer = await app.http.post("/v1/images/generations", json={"prompt": "a mill"})
        assert answer.status_code == 200


async def test_the_state_of_the_store_is_for_callers_with_a_key(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYS", "first-key-0123456789")
    access = Access(keys=read_keys(["env:KEYS"], "api_key"))
    async with open_app(shared_redis, "keys", access) as app:
        assert (await app.http.get("/health")).json() == {"status": "alive"}
        app.http.headers = {"Authorization": "Bearer first-key-0123456789"}
        assert "shared_store" in (await app.http.get("/health")).json()
