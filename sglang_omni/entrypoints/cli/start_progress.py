"""What is seen of engines while they start, and how long each took."""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stderr
from typing import TextIO, cast

from tqdm import tqdm
from tqdm.contrib import DummyTqdmFile

from sglang_omni.engines.runtime.process import EngineProcess

POLL_S = 0.2
REPORT_S = 30.0
"""Without a terminal, a line says so often what the start is at."""


@asynccontextmanager
async def progress(processes: Mapping[str, EngineProcess]) -> AsyncIterator["Board"]:
    """Show the state of each engine while the body runs.

    On a terminal each engine has a line that counts its seconds, and goes when the body ends.
    Elsewhere a start of more than half a minute prints what it is at.
    """
    screen = sys.stderr
    board = Board(processes, screen)
    drawing = asyncio.create_task(board.run())
    try:
        # What the engines print meanwhile goes above the lines, not through them.
        with redirect_stderr(cast(TextIO, DummyTqdmFile(screen))):
            yield board
    finally:
        drawing.cancel()
        await asyncio.wait({drawing})
        # One last look: whatever became ready since.
        board.draw()
        board.close()


class Board:
    """Looks at engines that start, draws them, and knows how long each took."""

    def __init__(self, processes: Mapping[str, EngineProcess], screen: TextIO) -> None:
        self._processes = processes
        self._began = time.monotonic()
        self._reported = self._began
        self._seconds: dict[str, float] = {}
        self._bars = {
            name: tqdm(
                total=0, bar_format="{desc}", position=row, disable=None, file=screen, leave=False
            )
            for row, name in enumerate(processes)
        }

    async def run(self) -> None:
        """Draw until cancelled."""
        while True:
            self.draw()
            self.report()
            await asyncio.sleep(POLL_S)

    def draw(self) -> None:
        """Look at every engine that is not ready yet."""
        seconds = time.monotonic() - self._began
        for name, process in self._processes.items():
            if name not in self._seconds and process.health.state != "stopped":
                if process.health.state == "ready":
                    self._seconds[name] = seconds
                text = f"{name:8} {seconds:6.1f} s  {_activity(process)}"
                self._bars[name].set_description_str(text)

    def close(self) -> None:
        """Take the lines away."""
        for bar in self._bars.values():
            bar.close()

    def summary(self) -> str:
        """Return the seconds that each kind of engine took until all of its kind were ready."""
        kinds: dict[str, float] = {}
        for name, seconds in self._seconds.items():
            kind = kind_of(name)
            kinds[kind] = max(seconds, kinds.get(kind, 0.0))
        by_time = sorted(kinds.items(), key=lambda item: item[1])
        return "  ".join(f"✓ {kind} {seconds:.1f} s" for kind, seconds in by_time)

    def report(self) -> None:
        """Say what a long start is at, where there is no terminal to draw on."""
        now = time.monotonic()
        if now - self._reported < REPORT_S or not all(bar.disable for bar in self._bars.values()):
            return
        self._reported = now
        waited = {name: one for name, one in self._processes.items() if name not in self._seconds}
        doing = "; ".join(f"{name}: {_activity(process)}" for name, process in waited.items())
        print(f"starting for {now - self._began:.0f} s: {doing}", flush=True)


def kind_of(name: str) -> str:
    """Return what a user calls the process: its replicas and ranks have one name."""
    kind = re.sub(r"-\d+$", "", name).replace("_", " ")
    return "decoders" if kind == "media decoder" else kind


def _activity(process: EngineProcess) -> str:
    health = process.health
    return "ready" if health.state == "ready" else health.progress or health.state
