"""A trace of decode steps becomes the kernels of a layer."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.thinker.profile import find_sequences, profile_step, read_trace

LAYERS, STEPS = 3, 4
LAYER = (("_fwd_grouped_kernel_stage1", 5.0), ("_fwd_kernel_stage2", 2.0), ("gemm", 8.0))
HEAD = (("lm_head", 20.0), ("sample", 3.0))
GAP = 1.0


def write_trace(path: Path) -> None:
    """Steps of three layers and a head, a microsecond between kernels, and what is no kernel."""
    events, now = [{"name": "launch", "cat": "cuda_runtime", "ts": 0, "dur": 5}, {"ph": "M"}], 0.0
    for name, took in STEPS * (LAYERS * LAYER + HEAD):
        events.append({"name": name, "cat": "kernel", "ts": now + GAP, "dur": took})
        now += GAP + took
    with gzip.open(path, "wt") as file:
        json.dump({"traceEvents": list(reversed(events))}, file)


def test_a_layer_is_what_comes_most_often(tmp_path: Path) -> None:
    write_trace(tmp_path / "one.json.gz")
    layer, last = find_sequences(read_trace(tmp_path / "one.json.gz"))
    assert layer.names == tuple(name for name, _ in LAYER)
    # The trace's first has nothing in front of it; the last layer of a step has the head behind it.
    assert layer.count == STEPS * (LAYERS - 1) - 1
    assert layer.us == pytest.approx([took + GAP for _, took in LAYER])
    assert last.names == tuple(name for name, _ in LAYER + HEAD)
    assert last.count == STEPS - 1


def test_a_step_has_its_seam_once(tmp_path: Path) -> None:
    write_trace(tmp_path / "one.json.gz")
    found = profile_step(read_trace(tmp_path / "one.json.gz"))
    assert found.layer.count == STEPS * (LAYERS - 1) - 1
    assert found.boundary
    assert found.boundary.us[-2:] == pytest.approx([took + GAP for _, took in HEAD])
    step = LAYERS * LAYER + HEAD
    assert found.step_us == pytest.approx(sum(took + GAP for _, took in step))


def test_a_trace_within_one_step_has_no_seam(tmp_path: Path) -> None:
    write_trace(tmp_path / "one.json.gz")
    found = profile_step(read_trace(tmp_path / "one.json.gz")[: LAYERS * len(LAYER)])
    assert found.boundary is None
    assert found.step_us is None
    assert found.layer.names == tuple(name for name, _ in LAYER)


def test_a_trace_without_layers_is_refused(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "none.json.gz", "wt") as file:
        json.dump({"traceEvents": [{"name": "gemm", "cat": "kernel", "ts": 0, "dur": 1}]}, file)
    with pytest.raises(ValueError, match="no layers"):
        find_sequences(read_trace(tmp_path / "none.json.gz"))
