"""Stores in memory and in Redis keep, find, forget and keep apart alike."""

import pytest

from sglang_omni.entrypoints.http.audio_transcript_cache import LIFETIME_S
from sglang_omni.entrypoints.http.response_store import (
    Json,
    StoredResponse,
    build_stored_response,
)
from tests.entrypoints.http.shared_store.stores_under_test import IMAGE_SECONDS, StoresUnderTest

HOSTILE_IDS = [
    *("", "*", "a:b", "a\x00b", "a\r\nFLUSHALL\r\n", "../..", "é你😀", "\ud800", "x" * 10_000),
    *('","', "null", "None", "[]", "{}"),
]


def make_response(response_id: str, text: str = "hello") -> StoredResponse:
    output: list[Json] = [
        {"id": "msg_1", "type": "message", "content": [{"type": "output_text", "text": text}]},
        {"id": "rs_1", "type": "reasoning", "summary": []},
    ]
    response: Json = {"id": response_id, "previous_response_id": "p", "output": output, "n": 0.5}
    return build_stored_response(response, ({"id": "a", "text": text}, {"id": "b"}))


async def test_a_response_comes_back_as_it_was(stores: StoresUnderTest) -> None:
    stored = make_response("resp_1", 'line\u2028 "quoted" \\ 你好 😀 \ud800\x00')
    assert await stores.responses.put("a", stored)
    assert await stores.responses.get("a", "resp_1") == stored
    assert await stores.responses.put("a", make_response("resp_1", "other"))
    assert await stores.responses.get("a", "resp_1") == make_response("resp_1", "other")


async def test_a_response_is_deleted_once(stores: StoresUnderTest) -> None:
    await stores.responses.put("a", make_response("resp_1"))
    assert not await stores.responses.delete("b", "resp_1")
    assert await stores.responses.delete("a", "resp_1")
    assert not await stores.responses.delete("a", "resp_1")
    assert await stores.responses.get("a", "resp_1") is None


@pytest.mark.parametrize("tenant", ["b", None, "", "A", "a:", "None", "a\x00"])
async def test_a_tenant_knows_its_own_only(stores: StoresUnderTest, tenant: str | None) -> None:
    await stores.responses.put("a", make_response("resp_1"))
    await stores.transcripts.keep("a", "audio-1", "words")
    assert await stores.responses.get(tenant, "resp_1") is None
    assert not await stores.responses.delete(tenant, "resp_1")
    assert await stores.transcripts.recall(tenant, ["audio-1"]) == {}
    assert await stores.responses.put(tenant, make_response("resp_1", "theirs"))
    assert await stores.responses.get("a", "resp_1") == make_response("resp_1")
    assert await stores.responses.get(tenant, "resp_1") == make_response("resp_1", "theirs")


async def test_a_tenant_and_an_id_are_not_run_together(stores: StoresUnderTest) -> None:
    await stores.responses.put("a", make_response("b:c"))
    assert await stores.responses.get("a:b", "c") is None
    await stores.responses.put("", make_response("ab"))
    assert await stores.responses.get("a", "b") is None
    # A response is no transcript, and neither is an image.
    assert await stores.transcripts.recall("a", ["b:c"]) == {}


async def test_hostile_ids_are_ids_as_any_other(stores: StoresUnderTest) -> None:
    for response_id in HOSTILE_IDS:
        assert await stores.responses.get("a", response_id) is None
        assert await stores.responses.put("a", make_response(response_id, response_id[:5]))
        assert await stores.transcripts.keep("a", response_id, response_id[:5])
    found = await stores.transcripts.recall("a", HOSTILE_IDS)
    for response_id in HOSTILE_IDS:
        stored = await stores.responses.get("a", response_id)
        assert stored == make_response(response_id, response_id[:5])
        assert found[response_id] == response_id[:5]


async def test_a_response_that_is_too_large_is_not_stored(stores: StoresUnderTest) -> None:
    assert not await stores.responses.put("a", make_response("resp_1", "x" * 20_000))
    assert await stores.responses.get("a", "resp_1") is None


async def test_use_renews_a_response(stores: StoresUnderTest) -> None:
    for number in (1, 2):
        await stores.responses.put("a", make_response(f"resp_{number}"))
    await stores.age(8)
    assert await stores.responses.get("a", "resp_1") is not None
    await stores.age(8)
    assert await stores.responses.get("a", "resp_2") is None
    assert await stores.responses.get("a", "resp_1") is not None
    await stores.age(11)
    assert await stores.responses.get("a", "resp_1") is None


async def test_transcripts_are_known_for_their_lifetime(stores: StoresUnderTest) -> None:
    assert await stores.transcripts.keep("a", "audio-1", "one 你好")
    assert await stores.transcripts.keep("a", "audio-2", "")
    assert await stores.transcripts.recall("a", []) == {}
    wanted = ["audio-2", "audio-1", "audio-3"]
    assert await stores.transcripts.recall("a", wanted) == {"audio-1": "one 你好", "audio-2": ""}
    # Use does not renew them: their answers have said when they expire.
    await stores.age(LIFETIME_S - 5)
    assert await stores.transcripts.recall("a", ["audio-1"]) == {"audio-1": "one 你好"}
    await stores.age(6)
    assert await stores.transcripts.recall("a", ["audio-1"]) == {}


async def test_images_are_fetched_by_their_names_until_they_expire(stores: StoresUnderTest) -> None:
    data = bytes(range(256)) * 100
    name = await stores.images.add(data, "webp")
    assert name.endswith(".webp")
    stored = await stores.images.get(name)
    assert stored is not None
    assert (stored.data, stored.file_type) == (data, "webp")
    for other in (name.replace(".webp", ".png"), "x.webp", "", "*", name + "x", "a.webp\x00"):
        assert await stores.images.get(other) is None
    await stores.age(IMAGE_SECONDS - 5)
    assert await stores.images.get(name) is not None
    await stores.age(6)
    assert await stores.images.get(name) is None
