"""Stored model responses, so that a later request may go on from one or read it.

`MemoryResponseStore` keeps them in this process, up to a number, a size and an age. A store that
several servers share takes its place behind `ResponseStore` (`shared_store/`).
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from sglang_omni.caching.lru_cache import LruCache

Json = dict[str, Any]


@dataclass(frozen=True)
class StoredResponse:
    """A response as its client got it, and the items of its own request's input.

    Attributes:
        response: The response object.
        input_items: The items.
        size_bytes: The memory that both take.
    """

    response: Json
    input_items: tuple[Json, ...]
    size_bytes: int

    @property
    def id(self) -> str:
        """Return the id of the response."""
        return str(self.response["id"])

    @property
    def previous_id(self) -> str | None:
        """Return the id of the response that this one went on from, if any."""
        previous_id: str | None = self.response["previous_response_id"]
        return previous_id

    @property
    def items(self) -> tuple[Json, ...]:
        """Return the turn that the response adds to its conversation: its input and output."""
        return (*self.input_items, *self.response["output"])

    @cached_property
    def items_by_id(self) -> Mapping[str, Json]:
        """Return the same items by their ids."""
        return {item["id"]: item for item in self.items}


def build_stored_response(response: Json, input_items: tuple[Json, ...]) -> StoredResponse:
    """Return a response as it is stored: without its log probabilities, which are large."""
    output = [_drop_logprobs(item) for item in response["output"]]
    kept = {**response, "output": output}
    return StoredResponse(kept, input_items, count_json_bytes([kept, *input_items]))


def _drop_logprobs(item: Json) -> Json:
    if item["type"] != "message":
        return item
    return {**item, "content": [{**part, "logprobs": []} for part in item["content"]]}


class ResponseStore(Protocol):
    """Keeps responses. Each is known to the tenant that stored it only; None is also a tenant."""

    async def put(self, tenant: str | None, stored: StoredResponse) -> bool:
        """Store a response, and return whether it was: one that is too large is not."""

    async def get(self, tenant: str | None, response_id: str) -> StoredResponse | None:
        """Return a response, and mark it as used, or return None."""

    async def delete(self, tenant: str | None, response_id: str) -> bool:
        """Delete a response, and return whether there was one."""


@dataclass(frozen=True)
class StoreLimits:
    """Bounds of the responses in memory.

    Attributes:
        max_responses: Their number.
        max_bytes: Their size.
        max_response_bytes: The size of one, media included. A larger one is not stored.
        lifetime_s: Seconds without use after which one is dropped.
    """

    max_responses: int = 16_384
    max_bytes: int = 256 << 20
    max_response_bytes: int = 64 << 20
    lifetime_s: float = 24 * 3600


DEFAULT_LIMITS = StoreLimits()


@dataclass(frozen=True)
class _Entry:
    """A stored response, and the time at which it expires."""

    stored: StoredResponse
    expires_at: float


class MemoryResponseStore:
    """Responses by tenant and id, in memory. Used by the event loop only."""

    def __init__(
        self, limits: StoreLimits = DEFAULT_LIMITS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits, self._clock = limits, clock
        # Every use moves an entry to the end and renews it, so the first one expires first.
        self._entries: LruCache[tuple[str | None, str], _Entry] = LruCache(
            limits.max_responses, limits.max_bytes, lambda entry: entry.stored.size_bytes
        )

    @property
    def size_bytes(self) -> int:
        """Return the memory that all responses take."""
        return self._entries.weight

    def __len__(self) -> int:
        return len(self._entries)

    async def put(self, tenant: str | None, stored: StoredResponse) -> bool:
        """Store a response, evict the least recently used, and return whether it was stored."""
        self._drop_expired()
        if stored.size_bytes > self._limits.max_response_bytes:
            return False
        self._renew((tenant, stored.id), stored)
        return True

    async def get(self, tenant: str | None, response_id: str) -> StoredResponse | None:
        """Return a response, and renew it, or return None."""
        self._drop_expired()
        entry = self._entries.peek((tenant, response_id))
        if entry is None:
            return None
        self._renew((tenant, response_id), entry.stored)
        return entry.stored

    async def delete(self, tenant: str | None, response_id: str) -> bool:
        """Delete a response, and return whether there was one."""
        self._drop_expired()
        return self._entries.pop((tenant, response_id)) is not None

    def _renew(self, key: tuple[str | None, str], stored: StoredResponse) -> None:
        self._entries.put(key, _Entry(stored, self._clock() + self._limits.lifetime_s))

    def _drop_expired(self) -> None:
        while (oldest := self._entries.oldest()) and oldest[1].expires_at <= self._clock():
            self._entries.pop(oldest[0])


def count_json_bytes(value: Any) -> int:
    """Return the memory that decoded JSON takes. A value that occurs twice counts twice."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        total += sys.getsizeof(item)
        if isinstance(item, dict):
            stack += item.keys()
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return total
