"""Processes that start and end together."""

import asyncio
import os
import signal
from contextlib import aclosing
from dataclasses import replace

import psutil
import pytest

from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.protocol.errors import EngineFailed, StartupError
from tests.engines.runtime.processes import eventually, group, running, toy_spec
from tests.engines.runtime.toy_workers import Count, ToySettings


def companion(fault: str = "") -> ProcessSpec:
    return replace(toy_spec("step", ToySettings(fault=fault)), name="helper")


def pids(engine: EngineProcess) -> list[int]:
    assert engine._group is not None
    return [one.pid for one in engine._group._connections]


async def test_they_start_and_stop_together() -> None:
    async with running("step", companions=(companion(), companion())) as engine:
        processes = pids(engine)
        assert len(set(processes)) == 3
        async with aclosing(engine.submit(Count(3))) as outputs:
            assert [output.value async for output in outputs] == [0, 1, 2]
    assert [group(pid) for pid in processes] == [[], [], []]


@pytest.mark.parametrize("victim", [0, 1])
async def test_when_one_ends_all_end_and_come_back(victim: int) -> None:
    async with running("step", companions=(companion(),)) as engine:
        before = pids(engine)
        async with aclosing(engine.submit(Count(10**9))) as outputs:
            await anext(outputs)
            os.kill(before[victim], signal.SIGKILL)
            with pytest.raises(EngineFailed, match="toy died"):
                async for _ in outputs:
                    pass
        await eventually(lambda: engine.health.restarts == 1, 10)
        await eventually(lambda: engine.health.state == "ready", 20)
        assert [group(pid) for pid in before] == [[], []]
        error = engine.health.last_error or ""
        assert error.startswith("lost helper, which was killed" if victim else "was killed")


@pytest.mark.parametrize("fault", ["checkpoint", "exit"])
async def test_a_companion_that_cannot_start_ends_the_start(fault: str) -> None:
    engine = EngineProcess(toy_spec("step", companions=(companion(fault=fault),)))
    with pytest.raises(StartupError, match="helper"):
        await engine.start()
    assert engine.pid is None
    assert engine.health.state == "failed"


async def test_a_lead_that_cannot_start_leaves_no_companion() -> None:
    slow = companion(fault="sleep")
    engine = EngineProcess(toy_spec("step", ToySettings(fault="checkpoint"), companions=(slow,)))
    before = set(psutil.Process().children())
    starting = asyncio.create_task(engine.start())
    await eventually(lambda: len(set(psutil.Process().children()) - before) == 2, 5)
    with pytest.raises(StartupError, match="toy could not start"):
        await starting
    assert set(psutil.Process().children()) <= before
