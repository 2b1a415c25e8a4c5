"""Stored responses: conversations that go on, reading, deleting, tenants and bounds."""

from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest

from sglang_omni.config.image_options import ImageOptions
from sglang_omni.entrypoints.api_keys import Keys, _digest
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.response_store import (
    Json,
    MemoryResponseStore,
    StoredResponse,
    StoreLimits,
    build_stored_response,
    count_json_bytes,
)
from sglang_omni.entrypoints.http.state_stores import build_memory_stores
from sglang_omni.pipeline.request import Finished, TextDelta, ToolCalled, Usage
from sglang_omni.protocol.body import MAX_MESSAGES
from sglang_omni.protocol.tools import ToolCall
from tests.entrypoints.http.fake import FakeBackend, playing, serving

UNKNOWN = f"resp_{'0' * 32}"


def ask(client: openai.OpenAI, text: Any, **fields: Any) -> Any:
    return client.responses.create(model="org/ming", input=text, **fields)


def post(http: httpx.Client, **fields: Any) -> httpx.Response:
    return http.post("/v1/responses", json={"input": "hello", **fields})


def texts(backend: FakeBackend) -> list[tuple[str, str]]:
    """The role and text of each message of the last request."""
    return [
        (message.role, "".join(part.text for part in message.content))
        for message in backend.requests[-1].messages
    ]


def test_a_conversation_goes_on(client: openai.OpenAI, backend: FakeBackend) -> None:
    first = ask(client, "one", instructions="Be brief.")
    second = ask(client, "two", previous_response_id=first.id)
    branch = ask(client, "other", previous_response_id=first.id)
    assert texts(backend) == [("user", "one"), ("assistant", "one "), ("user", "other")]
    ask(client, "three", previous_response_id=second.id, instructions="Rhyme.")
    assert texts(backend) == [
        ("system", "Rhyme."),
        *(("user", "one"), ("assistant", "one ")),
        *(("user", "two"), ("assistant", "two ")),
        ("user", "three"),
    ]
    assert second.previous_response_id == branch.previous_response_id == first.id


def test_media_stay_in_the_conversation(client: openai.OpenAI, backend: FakeBackend) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    sound = {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}
    text = {"type": "input_text", "text": "these"}
    first = ask(client, [{"role": "user", "content": [text, image, sound]}])
    ask(client, "and now?", previous_response_id=first.id)
    assert [part.kind for part in backend.requests[-1].media] == ["image", "audio"]


def test_a_streamed_response_is_stored_before_its_last_event(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    with client.responses.stream(model="org/ming", input="one") as events:
        final = events.get_final_response()
    assert client.responses.retrieve(final.id).output_text == "one "
    ask(client, "two", previous_response_id=final.id)
    assert texts(backend)[:2] == [("user", "one"), ("assistant", "one ")]


def test_an_item_may_be_named_by_its_id(client: openai.OpenAI, backend: FakeBackend) -> None:
    first = ask(client, "one")
    (given,) = client.responses.input_items.list(first.id)
    references = [{"type": "item_reference", "id": given.id}, {"id": first.output[0].id}]
    second = ask(client, [*references, {"role": "user", "content": "two"}])
    assert texts(backend) == [("user", "one"), ("assistant", "one "), ("user", "two")]
    assert len(client.responses.input_items.list(second.id).data) == 3


@pytest.mark.parametrize("item_id", ["msg_1", f"msg_{'0' * 32}_0", "é", "rs_x" * 100])
def test_an_unknown_item_is_refused(http: httpx.Client, item_id: str) -> None:
    items = [{"role": "user", "content": "a"}, {"type": "item_reference", "id": item_id}]
    answer = post(http, input=items)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "item_not_found"
    assert answer.json()["error"]["param"] == "input.1.id"


def test_what_is_not_stored_is_not_known(http: httpx.Client) -> None:
    response = post(http, store=False).json()
    assert response["store"] is False
    assert http.get(f"/v1/responses/{response['id']}").status_code == 404
    answer = post(http, previous_response_id=response["id"])
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "previous_response_not_found"
    assert error["param"] == "previous_response_id"


def test_a_response_is_read_and_deleted(client: openai.OpenAI) -> None:
    first = ask(client, "one", metadata={"a": "b"})
    second = ask(client, "two", previous_response_id=first.id)
    assert client.responses.retrieve(first.id) == first
    client.responses.delete(first.id)
    for read in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError) as caught:
            read(first.id)
        assert caught.value.code == "response_not_found"
    assert client.responses.retrieve(second.id) == second
    with pytest.raises(openai.BadRequestError):
        ask(client, "three", previous_response_id=second.id)


def test_a_response_cannot_be_cancelled(client: openai.OpenAI) -> None:
    first = ask(client, "one")
    with pytest.raises(openai.BadRequestError, match="background"):
        client.responses.cancel(first.id)


def test_a_stored_response_is_not_streamed(http: httpx.Client) -> None:
    response_id = post(http).json()["id"]
    answer = http.get(f"/v1/responses/{response_id}", params={"stream": "true"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "stream")


def test_the_items_of_an_input_are_listed_in_pages(client: openai.OpenAI) -> None:
    first = ask(client, "one")
    items = [{"role": "user", "content": f"two {n}"} for n in range(4)]
    second = ask(client, items, previous_response_id=first.id)
    page = client.responses.input_items.list(second.id, order="asc", limit=4)
    data: list[Any] = page.data
    assert [item.content[0].text for item in data] == ["one", "one ", "two 0", "two 1"]
    assert [item.role for item in data] == ["user", "assistant", "user", "user"]
    assert page.has_more
    assert len(list(page)) == 6  # The client reads further pages.
    newest: Any = client.responses.input_items.list(second.id, limit=1).data[0]
    assert newest.content[0].text == "two 3"


@pytest.mark.parametrize(
    ("query", "param"),
    [("limit=0", "limit"), ("limit=101", "limit"), ("order=up", "order"), ("after=x", "after")],
)
def test_wrong_pages_are_refused(http: httpx.Client, query: str, param: str) -> None:
    response_id = post(http).json()["id"]
    answer = http.get(f"/v1/responses/{response_id}/input_items?{query}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_tenants_do_not_see_each_other() -> None:
    names = ("first-key-0123456789", "second-key-0123456789")
    access = Access(keys=Keys(tuple(map(_digest, names))))
    with serving(access) as served, httpx.Client(base_url=served.url) as http:
        mine, other = (
            {"Authorization": f"Bearer {name}-key-0123456789"} for name in ("first", "second")
        )
        response_id = http.post("/v1/responses", json={"input": "a"}, headers=mine).json()["id"]
        url = f"/v1/responses/{response_id}"
        assert http.get(url, headers=mine).status_code == 200
        assert http.get(url).status_code == 401
        assert http.get(url, headers=other).status_code == 404
        assert http.get(f"{url}/input_items", headers=other).status_code == 404
        assert http.delete(url, headers=other).status_code == 404
        assert http.post(f"{url}/cancel", headers=other).status_code == 404
        follow = {"input": "b", "previous_response_id": response_id}
        assert http.post("/v1/responses", json=follow, headers=other).status_code == 400
        assert http.post("/v1/responses", json=follow, headers=mine).status_code == 200


def stored(number: int, text: str = "") -> StoredResponse:
    response: Json = {"id": f"resp_{number}", "previous_response_id": None, "output": []}
    return build_stored_response(response, ({"id": "a", "text": text},))


async def test_the_store_is_bounded_by_number_and_keeps_what_is_used() -> None:
    store = MemoryResponseStore(StoreLimits(max_responses=2))
    assert await store.put("a", stored(1))
    assert await store.put("a", stored(2))
    assert await store.get("a", "resp_1") is not None
    assert await store.put("a", stored(3))
    assert [await store.get("a", f"resp_{n}") is not None for n in (1, 2, 3)] == [True, False, True]
    assert await store.get("b", "resp_1") is None
    assert not await store.delete(None, "resp_1")
    assert await store.delete("a", "resp_1")
    assert len(store) == 1


async def test_the_store_is_bounded_by_size() -> None:
    store = MemoryResponseStore(StoreLimits(max_bytes=20_000, max_response_bytes=9000))
    assert not await store.put("a", stored(0, "x" * 9000))
    for number in range(10):
        assert await store.put("a", stored(number, "x" * 5000))
        assert store.size_bytes <= 20_000
    assert len(store) == 3
    for number in range(10):
        await store.delete("a", f"resp_{number}")
    assert store.size_bytes == 0


async def test_the_store_forgets_what_is_not_used() -> None:
    now = 0.0
    store = MemoryResponseStore(StoreLimits(lifetime_s=10), lambda: now)
    await store.put("a", stored(1))
    await store.put("a", stored(2))
    now += 9
    assert await store.get("a", "resp_1") is not None
    now += 9
    assert await store.get("a", "resp_2") is None
    assert await store.get("a", "resp_1") is not None
    now += 11
    await store.put("a", stored(3))
    assert len(store) == 1


def test_every_string_counts() -> None:
    assert count_json_bytes({"a": ["x" * 1000, {"b": "y" * 1000}]}) > 2000


def test_a_response_too_large_to_store_says_so() -> None:
    store = MemoryResponseStore(StoreLimits(max_response_bytes=20_000))
    stores = replace(build_memory_stores(ImageOptions()), responses=store)
    with serving(stores=stores) as served, httpx.Client(base_url=served.url) as http:
        small, large = (
            http.post("/v1/responses", json={"input": text}).json() for text in ("a", "a" * 20_000)
        )
        assert (small["store"], large["store"]) == (True, False)
        assert http.get(f"/v1/responses/{small['id']}").status_code == 200
        assert http.get(f"/v1/responses/{large['id']}").status_code == 404


def test_a_stored_call_that_no_request_can_have_is_refused(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(ToolCalled(ToolCall("", "{}")), Finished("stop", Usage(1)))
    response_id = post(http).json()["id"]
    answer = post(http, previous_response_id=response_id)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "previous_response_id")


def test_a_conversation_beyond_the_context_names_where_it_ends(
    http: httpx.Client, backend: FakeBackend
) -> None:
    long = "a " * 100_000
    first = post(http, input=long).json()["id"]
    answer = post(http, previous_response_id=first)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "previous_response_id")
    backend.script = playing(TextDelta("b"), Finished("stop", Usage(1)))
    second = post(http, input=long).json()["id"]
    answer = post(http, previous_response_id=second, input=long)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == ("input.0.content.0.text", "context_length_exceeded")


def test_a_conversation_has_a_limit_of_items(http: httpx.Client) -> None:
    items = [{"role": "user", "content": "a"}] * MAX_MESSAGES
    first = post(http, input=items).json()["id"]
    answer = post(http, previous_response_id=first)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "previous_response_id")
    answer = post(http, input=items, instructions="Be brief.")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input")
