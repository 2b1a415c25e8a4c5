"""What the tests of engine processes look at: process groups, and conditions that come true."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from tests.engines.runtime.toy_workers import ToySettings

ROOT = Path(__file__).parents[3]
TOYS = "tests.engines.runtime.toy_workers"


def toy_spec(kind: str, settings: ToySettings | None = None, **options: Any) -> ProcessSpec:
    """Return the spec of a toy engine; `kind` is "step" or "stream"."""
    return ProcessSpec(
        name="toy",
        factory=f"{TOYS}:make_{kind}",
        settings=settings or ToySettings(),
        env={"PYTHONPATH": str(ROOT)},
        **options,
    )


@asynccontextmanager
async def running(
    kind: str, settings: ToySettings | None = None, **options: Any
) -> AsyncIterator[EngineProcess]:
    """Run a toy engine, and check that nothing of it is left afterwards."""
    engine = EngineProcess(toy_spec(kind, settings, **options))
    await engine.start()
    try:
        yield engine
    finally:
        pid = engine.pid
        await engine.stop(deadline_s=2.0)
        assert engine.in_flight == 0
        assert pid is None or group(pid) == []


async def eventually(condition: Callable[[], bool], within_s: float) -> None:
    """Wait until a condition holds; fail if it does not within the given time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"did not come true within {within_s} s"
        await asyncio.sleep(0.02)


def group(pgid: int) -> list[int]:
    """Return the living processes of a process group, zombies left out."""
    return [pid for pid in _processes() if _state_and_group(pid) == (True, pgid)]


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    return _state_and_group(pid)[0]


def sockets(pid: int) -> set[str]:
    """Return the sockets that a process holds."""
    held = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # Closed meanwhile.
            held.add(os.readlink(descriptor))
    return {name for name in held if name.startswith("socket:")}


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _state_and_group(pid: int) -> tuple[bool, int]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False, -1
    return fields[0] != "Z", int(fields[2])
