"""Records which replica of an engine served a stage of a request, and on which machine."""

from collections.abc import Iterator
from contextlib import contextmanager

from sglang_omni.engines.runtime.pool import EnginePool, PinnedReplica
from sglang_omni.engines.runtime.process import Engine, EngineProcess
from sglang_omni.observability.trace import Span


@contextmanager
def pin(engine: Engine) -> Iterator[Engine]:
    """Provide one replica of a pool, so that it can be told which one; else the engine itself."""
    if isinstance(engine, EnginePool):
        with engine.pin_replica() as replica:
            yield replica
    else:
        yield engine


def record_replica(span: Span, engine: Engine) -> None:
    """Record the replica that a request was submitted to. A pool that is not pinned has none."""
    if isinstance(engine, PinnedReplica):
        engine = engine.replica
    if isinstance(engine, EngineProcess):
        span.replica, span.node = engine.spec.replica, engine.spec.node
