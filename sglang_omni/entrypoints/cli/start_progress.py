"""Shows the progress of engines while they start, and how long each took."""

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
NOT_STARTED = ("stopped", "standby")
REPORT_S = 30.0
"""Interval between two progress lines without a terminal, in seconds."""


@asynccontextmanager
async def show_progress(processes: Mapping[str, EngineProcess]) -> AsyncIterator["StartProgress"]:
    """Show the state of each engine while the body runs.

    On a terminal each engine has a line with its seconds; the lines are removed when the body ends.
    Without a terminal a start of more than half a minute prints a progress line.
    """
    stderr = sys.stderr
    start = StartProgress(processes, stderr)
    drawing = asyncio.create_task(start.run())
    try:
        # Other output must appear above the lines and not overwrite them.
        with redirect_stderr(cast(TextIO, DummyTqdmFile(stderr))):
            yield start
    finally:
        drawing.cancel()
        await asyncio.wait({drawing})
        # Record engines that became ready since the last update.
        start.draw()
        start.close()


class StartProgress:
    """Polls engines that start, draws their state, and records how long each took."""

    def __init__(self, processes: Mapping[str, EngineProcess], terminal: TextIO) -> None:
        self._processes = processes
        self._started_at = time.monotonic()
        self._reported_at = self._started_at
        self._start_s: dict[str, float] = {}
        self._bars = {
            name: tqdm(
                total=0, bar_format="{desc}", position=row, disable=None, file=terminal, leave=False
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
        """Update the line of every engine that is not ready yet."""
        elapsed_s = time.monotonic() - self._started_at
        for name, process in self._processes.items():
            if name not in self._start_s and process.health.state not in NOT_STARTED:
                if process.health.state == "ready":
                    self._start_s[name] = elapsed_s
                text = f"{name:8} {elapsed_s:6.1f} s  {_describe_activity(process)}"
                self._bars[name].set_description_str(text)

    def close(self) -> None:
        """Remove the lines."""
        for bar in self._bars.values():
            bar.close()

    def summary(self) -> str:
        """Return a line with the seconds until all engines of each kind were ready."""
        kinds: dict[str, float] = {}
        for name, start_s in self._start_s.items():
            kind = get_engine_kind(name)
            kinds[kind] = max(start_s, kinds.get(kind, 0.0))
        by_time = sorted(kinds.items(), key=lambda item: item[1])
        return "  ".join(f"✓ {kind} {start_s:.1f} s" for kind, start_s in by_time)

    def describe_longest(self) -> str:
        """Return the phases of the engine that was ready last, in the order of its start."""
        if not self._start_s:
            return ""
        name = max(self._start_s, key=lambda name: self._start_s[name])
        phases = self._processes[name].health.start_phases
        times = (f"{phase.name} {phase.seconds:.1f} s" for phase in phases)
        return f"{get_engine_kind(name)}: {' · '.join(times)}"

    def report(self) -> None:
        """Print the progress of a long start if there is no terminal to draw on."""
        now = time.monotonic()
        has_terminal = not all(bar.disable for bar in self._bars.values())
        if has_terminal or now - self._reported_at < REPORT_S:
            return
        self._reported_at = now
        activities = "; ".join(
            f"{name}: {_describe_activity(process)}"
            for name, process in self._processes.items()
            if name not in self._start_s and process.health.state != "standby"
        )
        print(f"starting for {now - self._started_at:.0f} s: {activities}", flush=True)


def get_engine_kind(name: str) -> str:
    """Return the name of an engine without the number of its replica."""
    kind = re.sub(r"-\d+$", "", name).replace("_", " ")
    return "decoders" if kind == "media decoder" else kind


def _describe_activity(process: EngineProcess) -> str:
    health = process.health
    return "ready" if health.state == "ready" else health.progress or health.state
