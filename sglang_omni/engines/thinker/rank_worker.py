"""The ranks of a thinker on a machine other than the first: they work, and answer nobody.

This module imports sglang, so only the process of these ranks may import it.
"""

import os
import threading
from collections.abc import AsyncGenerator

from sglang import Engine

from sglang_omni.engines.runtime.worker import WorkerOutput
from sglang_omni.engines.thinker.contract import ThinkerRequest, ThinkerSettings
from sglang_omni.engines.thinker.worker import restore_sigterm, start_engine
from sglang_omni.protocol.errors import EngineFailed


def open_worker(settings: ThinkerSettings) -> "RankWorker":
    """Load the ranks of this machine. The first machine's must start at the same time."""
    # Otherwise the constructor of SGLang's engine would never return.
    os.environ["SGLANG_BLOCK_NONZERO_RANK_CHILDREN"] = "0"
    closing = threading.Event()
    engine = start_engine(settings, closing)
    restore_sigterm()
    return RankWorker(engine, closing)


class RankWorker:
    """Holds SGLang's processes. They end with this one, and it ends with the first of them."""

    info = None

    def __init__(self, engine: Engine, closing: threading.Event) -> None:
        self._engine, self._closing = engine, closing

    async def run(
        self, request_id: str, request: ThinkerRequest
    ) -> AsyncGenerator[WorkerOutput, None]:
        """Fail: the first machine's process takes the requests."""
        raise EngineFailed("the first machine's process takes the requests")
        yield

    async def counters(self) -> dict[str, float]:
        """Return nothing."""
        return {}

    async def profile(self, folder: str | None) -> None:
        """Do nothing: the profiler of the first machine asks every rank."""

    async def close(self) -> None:
        """Stop SGLang's processes."""
        self._closing.set()
        self._engine.shutdown()
