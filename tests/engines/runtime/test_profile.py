"""An engine is profiled between its steps, on the thread that takes them."""

import json
import os
from pathlib import Path

import pytest

from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.runtime.profile import TorchProfiler
from sglang_omni.protocol.errors import EngineUnavailable
from tests.engines.runtime.processes import eventually, running, toy_spec
from tests.engines.runtime.test_process import collect
from tests.engines.runtime.toy_workers import Count, ToySettings


def test_what_was_computed_is_in_the_trace(tmp_path: Path) -> None:
    import torch

    profiler = TorchProfiler()
    profiler.switch(str(tmp_path / "new"))
    torch.ones(8) @ torch.ones(8)
    profiler.switch(None)
    [file] = (tmp_path / "new").iterdir()
    assert file.name == f"trace-{os.getpid()}.json"
    names = {event.get("name") for event in json.loads(file.read_text())["traceEvents"]}
    assert "aten::dot" in names or "aten::matmul" in names


def test_orders_out_of_order_are_logged_and_harmless(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    profiler = TorchProfiler()
    profiler.switch(None)
    assert "profiler is not running" in caplog.text
    profiler.switch(str(tmp_path))
    profiler.switch(str(tmp_path))
    assert "already running" in caplog.text
    profiler.switch(None)
    assert len(list(tmp_path.iterdir())) == 1


async def test_an_idle_engine_takes_the_order_and_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = ""

    def heard(words: str) -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return words in said

    async with running("step") as engine:
        engine.profile(str(tmp_path))
        await eventually(lambda: heard("does not use PyTorch"), within_s=3)
        assert await collect(engine, Count(3)) == [0, 1, 2]
    async with running("stream") as engine:
        engine.profile(str(tmp_path))
        await eventually(lambda: heard(f"profiling to {tmp_path}"), within_s=3)


def test_an_engine_that_is_not_up_cannot_be_profiled() -> None:
    with pytest.raises(EngineUnavailable):
        EngineProcess(toy_spec("step", ToySettings())).profile("anywhere")
