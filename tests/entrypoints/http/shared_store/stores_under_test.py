"""Stores of both kinds in one form: with time that a test lets pass."""

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from sglang_omni.config.load import load_config
from sglang_omni.entrypoints.http.audio_transcript_cache import (
    AudioTranscriptCache,
    MemoryAudioTranscriptCache,
)
from sglang_omni.entrypoints.http.image_store import ImageStore, MemoryImageStore
from sglang_omni.entrypoints.http.response_store import (
    MemoryResponseStore,
    ResponseStore,
    StoreLimits,
)
from sglang_omni.entrypoints.http.shared_store.open_stores import open_stores
from sglang_omni.entrypoints.http.state_stores import StateStores

LIMITS = StoreLimits(max_response_bytes=20_000, lifetime_s=10)
IMAGE_SECONDS = 60


@dataclass(frozen=True)
class StoresUnderTest:
    """The stores, and a function that lets seconds pass for what is in them."""

    responses: ResponseStore
    transcripts: AudioTranscriptCache
    images: ImageStore
    age: Callable[[float], Awaitable[None]]


def use_memory_stores() -> StoresUnderTest:
    now = [0.0]

    async def age(seconds: float) -> None:
        now[0] += seconds

    def clock() -> float:
        return now[0]

    return StoresUnderTest(
        MemoryResponseStore(LIMITS, clock),
        MemoryAudioTranscriptCache(clock=clock),
        MemoryImageStore(1 << 20, IMAGE_SECONDS, clock),
        age,
    )


@asynccontextmanager
async def open_redis_stores(url: str) -> AsyncGenerator[StoresUnderTest, None]:
    """Yield stores in a Redis that nobody else uses the same prefix in."""
    from sglang_omni.entrypoints.http.shared_store import redis_stores

    async with open_shared(url) as (opened, prefix), open_raw(url) as raw:
        client = opened.responses._client  # type: ignore[attr-defined]

        async def age(seconds: float) -> None:
            for key in await raw.keys(f"{prefix}:*"):
                left_ms = await raw.pttl(key)
                assert left_ms > 0, "an entry without an end"
                await raw.pexpire(key, round(left_ms - seconds * 1000))

        yield StoresUnderTest(
            redis_stores.RedisResponseStore(client, LIMITS),
            opened.transcripts,
            redis_stores.RedisImageStore(client, IMAGE_SECONDS),
            age,
        )


@asynccontextmanager
async def open_shared(
    url: str, registry: CollectorRegistry | None = None, **options: Any
) -> AsyncGenerator[tuple[StateStores, str], None]:
    """Yield what a server opens that is configured so, and the prefix of its keys."""
    prefix = options.pop("key_prefix", None) or uuid.uuid4().hex
    given = {f"shared_store.{name}": value for name, value in options.items()}
    given |= {"shared_store.url": url, "shared_store.key_prefix": prefix}
    async with open_stores(load_config(None, given), registry or CollectorRegistry()) as stores:
        yield stores, prefix


@asynccontextmanager
async def open_raw(url: str) -> AsyncGenerator[Any, None]:
    """Yield a plain client, to see what is in Redis."""
    from redis.asyncio import Redis

    async with Redis.from_url(url) as raw:
        yield raw
