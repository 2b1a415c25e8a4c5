"""Invariants of one process: what cannot start leaves nothing, and what it says is heard."""

import io
import subprocess
import sys
import threading
from typing import Any

import pytest

from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.runtime.subprocess import _read_line
from sglang_omni.protocol.errors import StartupError
from tests.engines.runtime.processes import alive, toy_spec


def test_a_progress_bar_leaves_only_its_last_state() -> None:
    stream = io.BytesIO(b" 1%\r50%\r100%\nloaded\r\n\nno newline \xff")
    lines = [_read_line(stream) for _ in range(5)]
    assert lines == ["100%", "loaded", "", "no newline �", None]


async def test_an_engine_the_system_cannot_spawn_is_a_startup_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    engine = EngineProcess(toy_spec("step"))
    with pytest.raises(StartupError, match=r"toy could not be spawned: .*/no/such/python"):
        await engine.start()
    assert engine.health.state == "failed"


async def test_a_process_nobody_can_attend_to_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    spawned = []
    popen = subprocess.Popen

    def spawn(*arguments: Any, **options: Any) -> Any:
        spawned.append(popen(*arguments, **options))
        return spawned[-1]

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(subprocess, "Popen", spawn)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(StartupError, match="can't start new thread"):
        await EngineProcess(toy_spec("step")).start()
    assert len(spawned) == 1
    assert not alive(spawned[0].pid)
