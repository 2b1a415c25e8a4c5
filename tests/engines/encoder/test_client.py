"""An encoder engine behind its cache: nothing is encoded twice, nothing outlives its askers."""

import asyncio
from collections.abc import AsyncGenerator

import numpy as np
import pytest

from sglang_omni.engines.encoder.cache import Embedding, EmbeddingCache
from sglang_omni.engines.encoder.client import EncoderClient
from sglang_omni.engines.encoder.contract import Encoded, VisionEncodeRequest
from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.protocol.errors import EngineFailed

GRID = (1, 4, 4)


class Engine:
    """Encodes when it is let; counts what it was asked and what was given up."""

    def __init__(self) -> None:
        self.asked = self.given_up = 0
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def submit(self, request: VisionEncodeRequest) -> AsyncGenerator[Encoded, None]:
        self.asked += 1
        try:
            await self.go.wait()
            if self.error:
                raise self.error
            yield Encoded(request.rows.write(np.full((4, 8), self.asked, np.float32)))
        except asyncio.CancelledError:
            self.given_up += 1
            raise


@pytest.fixture
async def engine() -> Engine:
    return Engine()


@pytest.fixture
async def client(engine: Engine) -> EncoderClient:
    return EncoderClient(engine, EmbeddingCache(1 << 20))


def request() -> VisionEncodeRequest:
    return VisionEncodeRequest(SharedArray(), Layout((1, 64, 64, 3), "|u1"), SharedArray())


async def begin(client: EncoderClient, key: bytes) -> asyncio.Task[Embedding]:
    task = asyncio.create_task(client.encode(key, request(), GRID))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def test_a_picture_seen_before_is_recalled_with_its_grid(
    client: EncoderClient, engine: Engine
) -> None:
    engine.go.set()
    assert client.get_cached(b"k") is None
    first = await client.encode(b"k", request(), GRID)
    assert client.get_cached(b"k") == first
    assert first.grid == GRID
    assert first.rows.read(first.layout).shape == (4, 8)


async def test_equal_pictures_under_way_are_encoded_once(
    client: EncoderClient, engine: Engine
) -> None:
    tasks = [await begin(client, b"k") for _ in range(3)]
    other = await begin(client, b"other")
    engine.go.set()
    assert len({id((await task).rows) for task in tasks}) == 1
    await other
    assert engine.asked == 2
    assert client.counters()["cache_joined"] == 2


async def test_the_work_is_given_up_with_its_last_asker_only(
    client: EncoderClient, engine: Engine
) -> None:
    first, second = await begin(client, b"k"), await begin(client, b"k")
    first.cancel()
    await asyncio.sleep(0.01)
    assert engine.given_up == 0
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    await asyncio.sleep(0.01)
    assert engine.given_up == 1
    third = await begin(client, b"k")
    engine.go.set()
    assert (await third).grid == GRID


async def test_a_failure_reaches_all_askers_and_is_not_kept(
    client: EncoderClient, engine: Engine
) -> None:
    engine.error = EngineFailed("broken")
    tasks = [await begin(client, b"k") for _ in range(2)]
    engine.go.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, EngineFailed) for result in results)
    engine.error = None
    assert (await client.encode(b"k", request(), GRID)).grid == GRID
