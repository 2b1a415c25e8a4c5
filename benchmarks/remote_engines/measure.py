"""Times the same engine here and on another machine, asked by turns."""

import statistics
import time
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.remote_engines.worker import (
    FACTORY,
    FEATURES,
    PIXELS,
    ChunkRequest,
    FeatureRequest,
)
from sglang_omni.engines.remote.contract import ClusterSettings, move_to_node
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.shared_array import SharedArray

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Cost:
    """Medians and 95 % of the round trips in milliseconds, here and on the node."""

    what: str
    local_ms: float
    remote_ms: float
    local_p95_ms: float
    remote_p95_ms: float

    @property
    def added_ms(self) -> float:
        """Return what the other machine adds to half of the round trips at most."""
        return self.remote_ms - self.local_ms


async def measure(cluster: ClusterSettings, node: str, repeats: int) -> list[Cost]:
    """Return the costs of chunks and features on a node."""
    spec = ProcessSpec("benchmark", FACTORY, None, {"PYTHONPATH": str(ROOT)})
    engines = [EngineProcess(spec), EngineProcess(move_to_node(spec, node, cluster))]
    try:
        for engine in engines:
            await engine.start()
        return [
            await _compare("chunk", engines, repeats),
            await _compare("features", engines, repeats),
        ]
    finally:
        for engine in engines:
            await engine.stop()


async def _compare(what: str, engines: list[EngineProcess], repeats: int) -> Cost:
    times: list[list[float]] = [[], []]
    for _ in range(repeats):
        for engine, taken in zip(engines, times, strict=True):
            taken.append(await _time(what, engine))
    # The first ones warm up.
    warm = [sorted(taken[repeats // 10 :]) for taken in times]
    medians = [1000 * statistics.median(taken) for taken in warm]
    most = [1000 * taken[int(0.95 * len(taken))] for taken in warm]
    return Cost(what, *medians, *most)


async def _time(what: str, engine: EngineProcess) -> float:
    pixels, rows = SharedArray(), SharedArray()
    request: ChunkRequest | FeatureRequest = ChunkRequest()
    if what == "features":
        request = FeatureRequest(pixels, pixels.write(np.ones(PIXELS, np.uint8)), rows)
    asked_at = time.perf_counter()
    async with aclosing(engine.submit(request)) as answers:
        async for answer in answers:
            if answer.layout is not None:
                assert rows.read(answer.layout).shape == FEATURES
    return time.perf_counter() - asked_at
