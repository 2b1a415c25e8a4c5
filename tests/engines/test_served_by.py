"""A stage of a request tells which replica served it, and where."""

from dataclasses import replace

import pytest

from sglang_omni.engines.runtime.pool import EnginePool
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.served_by import pin, record_replica
from sglang_omni.observability.timeline import draw_timeline, trace_to_dict
from sglang_omni.observability.trace import Span, Trace
from tests.engines.runtime.processes import toy_spec


def test_the_replica_that_was_pinned_is_recorded() -> None:
    first, second = toy_spec("step").replicate((None, None))
    pool = EnginePool([first, replace(second, node="node-b")])
    spans = [Span("talker", 0.0) for _ in range(2)]
    with pin(pool) as one, pin(pool) as other:
        record_replica(spans[0], one)
        record_replica(spans[1], other)
    assert [(span.replica, span.node) for span in spans] == [(0, ""), (1, "node-b")]


def test_a_process_is_its_own_replica_and_anything_else_has_none() -> None:
    span = Span("thinker", 0.0)
    pool = EnginePool([toy_spec("step")])
    record_replica(span, pool)
    assert (span.replica, span.node) == (None, None)
    process = EngineProcess(replace(toy_spec("step"), node="b"))
    with pin(process) as same:
        assert same is process
    record_replica(span, process)
    assert (span.replica, span.node) == (0, "b")


@pytest.mark.parametrize(
    ("replica", "node", "note"),
    [
        (None, None, ""),
        (0, "", ""),
        (2, "", " replica 2"),
        (0, "node-b", " on node-b"),
        (1, "node-b", " EngineFailed replica 1 on node-b"),
    ],
)
def test_a_timeline_tells_it(replica: int | None, node: str | None, note: str) -> None:
    trace = Trace("abc", started_at=0.0, ended_at=1.0)
    error = "EngineFailed" if "Failed" in note else None
    trace.spans = [Span("talker", 0.0, ended_at=1.0, error=error, replica=replica, node=node)]
    shown = trace_to_dict(trace, 1.0)
    (stage,) = shown["stages"]
    assert (stage["replica"], stage["node"]) == (replica, node)
    (line,) = [line for line in draw_timeline(shown) if line.startswith("talker")]
    assert line.endswith(f"={note}")
