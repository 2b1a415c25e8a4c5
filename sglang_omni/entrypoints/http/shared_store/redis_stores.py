"""The stores of clients' state in Redis.

Entries are JSON and expire by themselves; images are their files. What bounds them all together is
Redis' own `maxmemory`. An entry names its key, so that one that is not what was asked for, for
whatever reason, is found out.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from sglang_omni.entrypoints.http.audio_transcript_cache import LIFETIME_S
from sglang_omni.entrypoints.http.image_store import StoredImage, make_image_name
from sglang_omni.entrypoints.http.response_store import (
    DEFAULT_LIMITS,
    StoredResponse,
    StoreLimits,
    count_json_bytes,
)
from sglang_omni.entrypoints.http.shared_store.client import RedisClient
from sglang_omni.entrypoints.http.shared_store.keys import make_key
from sglang_omni.media.image_file import ImageFileType
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.errors import SharedStoreUnavailable

RESPONSE, TRANSCRIPT, IMAGE = "response", "transcript", "image"
_MILLISECONDS = 1000


class RedisResponseStore:
    """Responses in Redis. Each use renews their lifetime."""

    def __init__(self, client: RedisClient, limits: StoreLimits = DEFAULT_LIMITS) -> None:
        """Take the size of one response and the lifetime from `limits`."""
        self._client, self._limits = client, limits
        self._lifetime_ms = round(limits.lifetime_s * _MILLISECONDS)

    async def put(self, tenant: str | None, stored: StoredResponse) -> bool:
        """Store a response, and return whether it was stored.

        One that is too large is not, and none while Redis does not answer.
        """
        if stored.size_bytes > self._limits.max_response_bytes:
            return False
        key = self._make_key(tenant, stored.id)
        entry = {"key": key, "response": stored.response, "input_items": stored.input_items}
        data = await run_off_loop(stored.size_bytes, _encode, entry)
        with suppress(SharedStoreUnavailable):
            await self._client.run("write", "SET", key, data, "PX", self._lifetime_ms)
            return True
        return False

    async def get(self, tenant: str | None, response_id: str) -> StoredResponse | None:
        """Return a response, and renew it, or return None. Raises `SharedStoreUnavailable`."""
        key = self._make_key(tenant, response_id)
        data = await self._client.run("read", "GETEX", key, "PX", self._lifetime_ms)
        return None if data is None else await run_off_loop(len(data), _decode_response, key, data)

    async def delete(self, tenant: str | None, response_id: str) -> bool:
        """Delete a response, and return whether there was one. Raises `SharedStoreUnavailable`."""
        key = self._make_key(tenant, response_id)
        return bool(await self._client.run("delete", "DEL", key))

    def _make_key(self, tenant: str | None, response_id: str) -> str:
        return make_key(self._client.key_prefix, RESPONSE, tenant, response_id)


class RedisAudioTranscriptCache:
    """Transcripts in Redis."""

    def __init__(self, client: RedisClient, lifetime_s: float = LIFETIME_S) -> None:
        self._client, self._lifetime_ms = client, round(lifetime_s * _MILLISECONDS)

    async def keep(self, tenant: str | None, audio_id: str, transcript: str) -> bool:
        """Keep a transcript, and return whether it was kept: none while Redis does not answer."""
        key = self._make_key(tenant, audio_id)
        entry = {"key": key, "transcript": transcript}
        data = await run_off_loop(len(transcript), _encode, entry)
        with suppress(SharedStoreUnavailable):
            await self._client.run("write", "SET", key, data, "PX", self._lifetime_ms)
            return True
        return False

    async def recall(self, tenant: str | None, audio_ids: Collection[str]) -> Mapping[str, str]:
        """Return the transcripts of those ids that are known and have not expired.

        Raises `SharedStoreUnavailable`.
        """
        if not audio_ids:
            return {}
        keys = {audio_id: self._make_key(tenant, audio_id) for audio_id in audio_ids}
        found = await self._client.run("read", "MGET", *keys.values())
        size = sum(len(data) for data in found if data is not None)
        return await run_off_loop(size, _decode_transcripts, keys, found)

    def _make_key(self, tenant: str | None, audio_id: str) -> str:
        return make_key(self._client.key_prefix, TRANSCRIPT, tenant, audio_id)


class RedisImageStore:
    """Files of images in Redis. A file's name says its type."""

    def __init__(self, client: RedisClient, seconds: float) -> None:
        """Keep files for `seconds`."""
        self._client, self._lifetime_ms = client, round(seconds * _MILLISECONDS)

    async def add(self, data: bytes, file_type: ImageFileType) -> str:
        """Store a file, and return its name. Raises `SharedStoreUnavailable`."""
        name = make_image_name(file_type)
        await self._client.run("write", "SET", self._make_key(name), data, "PX", self._lifetime_ms)
        return name

    async def get(self, name: str) -> StoredImage | None:
        """Return a file; None if there is none or it has expired.

        Raises `SharedStoreUnavailable`.
        """
        suffix = name.rpartition(".")[2]
        file_types: dict[str, ImageFileType] = {one: one for one in get_args(ImageFileType)}
        if suffix not in file_types:
            return None
        data = await self._client.run("read", "GET", self._make_key(name))
        return None if data is None else StoredImage(data, file_types[suffix])

    def _make_key(self, name: str) -> str:
        return make_key(self._client.key_prefix, IMAGE, None, name)


def _encode(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode(
        errors="surrogatepass"
    )


def _decode(key: str, data: bytes) -> dict[str, Any]:
    """Return an entry. Raises `SharedStoreUnavailable` if it is not the one of that key."""
    try:
        entry = json.loads(data)
    except ValueError:
        entry = None
    if not isinstance(entry, dict) or entry.get("key") != key:
        raise SharedStoreUnavailable("the shared store returned an entry that is not valid")
    return entry


def _decode_transcripts(keys: Mapping[str, str], found: Sequence[bytes | None]) -> dict[str, str]:
    """Return the transcripts by their ids. `found` are the entries of `keys`, in their order."""
    return {
        audio_id: _decode(key, data)["transcript"]
        for (audio_id, key), data in zip(keys.items(), found, strict=True)
        if data is not None
    }


def _decode_response(key: str, data: bytes) -> StoredResponse:
    entry = _decode(key, data)
    response, input_items = entry["response"], tuple(entry["input_items"])
    return StoredResponse(response, input_items, count_json_bytes([response, *input_items]))
