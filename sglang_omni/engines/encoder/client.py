"""The client of an encoder engine, with a cache and single-flight encoding."""

from contextlib import aclosing

from sglang_omni.caching.single_flight import SingleFlight
from sglang_omni.engines.encoder.cache import Embedding, EmbeddingCache
from sglang_omni.engines.encoder.contract import AudioEncodeRequest, Encoded, VisionEncodeRequest
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.served_by import pin, record_replica
from sglang_omni.observability.trace import Span


class EncoderClient:
    """Encodes media by content key. Equal media in progress at the same time are encoded once."""

    def __init__(self, engine: Engine, cache: EmbeddingCache) -> None:
        self._engine, self._cache = engine, cache
        self._flights: SingleFlight[bytes, tuple[Embedding, Engine]] = SingleFlight()
        self._num_joined = 0

    def get_cached(self, key: bytes) -> Embedding | None:
        """Return the embedding of a medium that was encoded before, or None."""
        return self._cache.get(key)

    async def encode(
        self,
        key: bytes,
        request: VisionEncodeRequest | AudioEncodeRequest,
        grid: tuple[int, int, int] | None = None,
        seconds: tuple[float, ...] = (),
        span: Span | None = None,
    ) -> Embedding:
        """Encode a medium and cache the result; `span` learns which replica did it.

        Raises the errors of the engine.

        Cancelling the call cancels the request in the engine, unless another call waits for it.
        """
        self._num_joined += key in self._flights
        embedding, engine = await self._flights.run(
            key, lambda: self._run(key, request, grid, seconds)
        )
        if span is not None:
            record_replica(span, engine)
        return embedding

    def counters(self) -> dict[str, float]:
        """Return the cache's counters, and how often a call joined the encoding of another."""
        return {**self._cache.counters(), "cache_joined": self._num_joined}

    async def _run(
        self,
        key: bytes,
        request: VisionEncodeRequest | AudioEncodeRequest,
        grid: tuple[int, int, int] | None,
        seconds: tuple[float, ...],
    ) -> tuple[Embedding, Engine]:
        """Return the embedding, and the replica that made it."""
        with pin(self._engine) as engine:
            async with aclosing(engine.submit(request)) as outputs:
                encoded: Encoded = await anext(outputs)
        embedding = Embedding(request.rows, encoded.layout, grid, seconds)
        self._cache.put(key, embedding)
        return embedding, engine
