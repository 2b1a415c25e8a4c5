"""What the kernel says of processes that it killed for want of memory."""

import os
import signal
from pathlib import Path

import pytest

from sglang_omni.engines.runtime import oom
from sglang_omni.engines.runtime import subprocess as engine_subprocess
from sglang_omni.engines.runtime.oom import count_oom_kills
from tests.engines.runtime.processes import eventually, running
from tests.engines.runtime.test_process import collect
from tests.engines.runtime.toy_workers import Count


@pytest.mark.parametrize(
    ("group", "file"),
    [
        ("0::/pod", "pod/memory.events"),
        ("0::/", "memory.events"),
        ("3:cpu:/x\n4:memory:/pod", "memory/pod/memory.oom_control"),
        ("4:memory:/of/the/host", "memory/memory.oom_control"),
    ],
)
def test_the_count_of_the_own_control_group_is_read(
    group: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oom, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(oom, "MEMBERSHIP", tmp_path / "cgroup")
    (tmp_path / "cgroup").write_text(f"{group}\n")
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("low 0\noom 4\noom_kill 3\n")
    assert count_oom_kills() == 3


async def test_an_engine_that_the_kernel_killed_for_memory_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kills = iter((0, 1))
    monkeypatch.setattr(engine_subprocess, "count_oom_kills", lambda: next(kills, 1))
    async with running("step") as engine:
        os.kill(engine.health.info.pid, signal.SIGKILL)
        await eventually(lambda: engine.health.restarts == 1, within_s=5)
        assert "SIGKILL: out of memory" in (engine.health.last_error or "")
        await eventually(lambda: engine.health.state == "ready", within_s=10)
        assert await collect(engine, Count(1)) == [0]
