"""An encoder engine as the pipeline uses it: a cache in front, and no work done twice."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from sglang_omni.engines.encoder.cache import Embedding, EmbeddingCache
from sglang_omni.engines.encoder.contract import AudioEncodeRequest, Encoded, VisionEncodeRequest
from sglang_omni.engines.runtime.process import Engine


@dataclass
class _Flight:
    """An encoding under way, and how many requests wait for it."""

    task: asyncio.Task[Embedding]
    waiting: int = 0


class EncoderClient:
    """Encodes media by content key. Equal media that are under way at once are encoded once."""

    def __init__(self, engine: Engine, cache: EmbeddingCache) -> None:
        self._engine, self._cache = engine, cache
        self._flights: dict[bytes, _Flight] = {}
        self._joined = 0

    def recall(self, key: bytes) -> Embedding | None:
        """The embedding of a medium encoded before, or None."""
        return self._cache.get(key)

    async def encode(
        self,
        key: bytes,
        request: VisionEncodeRequest | AudioEncodeRequest,
        grid: tuple[int, int, int] | None = None,
        seconds: tuple[float, ...] = (),
    ) -> Embedding:
        """Encode a medium and keep the result. Raises what the engine raises.

        Cancelling it cancels the work in the engine, unless another request waits for the same.
        """
        flight = self._flights.get(key)
        if flight is None:
            work = self._run(key, request, grid, seconds)
            flight = self._flights[key] = _Flight(asyncio.create_task(work))
        else:
            self._joined += 1
        flight.waiting += 1
        try:
            # Shielded: the other requests that wait for it go on when this one is cancelled.
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                del self._flights[key]
                flight.task.cancel()

    def counters(self) -> dict[str, float]:
        """The cache's counters, and how often a request joined the encoding of another."""
        return {**self._cache.counters(), "cache_joined": self._joined}

    async def _run(
        self,
        key: bytes,
        request: VisionEncodeRequest | AudioEncodeRequest,
        grid: tuple[int, int, int] | None,
        seconds: tuple[float, ...],
    ) -> Embedding:
        async with aclosing(self._engine.submit(request)) as outputs:
            encoded: Encoded = await anext(outputs)
        embedding = Embedding(request.rows, encoded.layout, grid, seconds)
        self._cache.put(key, embedding)
        return embedding
