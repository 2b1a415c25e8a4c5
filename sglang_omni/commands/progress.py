"""Progress bars for engines that are starting, one line for each."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stderr
from typing import TextIO, cast

from tqdm import tqdm
from tqdm.contrib import DummyTqdmFile

from sglang_omni.engine.process import EngineProcess

POLL_S = 0.2


@asynccontextmanager
async def progress(processes: Mapping[str, EngineProcess]) -> AsyncIterator[None]:
    """Draw each engine's state while the body runs.

    On a terminal each engine has a line that counts its seconds; elsewhere a line is printed
    when what it does changes.
    """
    screen = sys.stderr
    board = _Board(processes, screen)
    drawing = asyncio.create_task(board.run())
    try:
        # What the engines print meanwhile goes above the lines, not through them.
        with redirect_stderr(cast(TextIO, DummyTqdmFile(screen))):
            yield
    finally:
        drawing.cancel()
        await asyncio.wait({drawing})
        # One last look, so that the lines end on what is true now.
        board.draw()
        board.close()


class _Board:
    """The lines on the screen."""

    def __init__(self, processes: Mapping[str, EngineProcess], screen: TextIO) -> None:
        self._processes = processes
        self._began = time.monotonic()
        self._shown: dict[str, str] = {}
        self._bars = {
            name: tqdm(total=0, bar_format="{desc}", position=row, disable=None, file=screen)
            for row, name in enumerate(processes)
        }

    async def run(self) -> None:
        while True:
            self.draw()
            await asyncio.sleep(POLL_S)

    def draw(self) -> None:
        seconds = time.monotonic() - self._began
        for name, process in self._processes.items():
            if self._shown.get(name) != "ready" and process.health.state != "stopped":
                self._show(name, _doing(process), seconds)

    def close(self) -> None:
        for bar in self._bars.values():
            bar.close()

    def _show(self, name: str, doing: str, seconds: float) -> None:
        bar = self._bars[name]
        bar.set_description_str(f"{name:8} {seconds:6.1f} s  {doing}")
        if bar.disable and self._shown.get(name) != doing:
            print(f"[{seconds:5.1f} s] {name}: {doing}", flush=True)
        self._shown[name] = doing


def _doing(process: EngineProcess) -> str:
    health = process.health
    return "ready" if health.state == "ready" else health.progress or health.state
