"""How long this machine let a process wait that wanted to run, for which no server is to blame.

A process that only sleeps is woken late for the same reasons as a server is: other processes have
the cores, or another machine of the same host has them.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SLEEPER = """
import sys, threading, time

ending = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ending.set()), daemon=True).start()
print("ready", flush=True)
longest = 0.0
while not ending.is_set():
    before = time.monotonic()
    time.sleep(0.005)
    longest = max(longest, time.monotonic() - before - 0.005)
print(longest)
"""


@dataclass
class MachineStalls:
    """The longest stall of a span of time, in seconds; known once that has ended."""

    longest_s: float = 0.0

    def allow(self, bound_s: float) -> float:
        """Return what a bound becomes: itself, unless the machine stalled for half as long."""
        return max(bound_s, 2 * self.longest_s)


@contextmanager
def measured_stalls() -> Iterator[MachineStalls]:
    """Measure the machine's stalls while the body runs, from a process of their own."""
    stalls = MachineStalls()
    command = [sys.executable, "-S", "-E", "-c", _SLEEPER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sleeper:
        assert sleeper.stdin is not None
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == "ready\n"
        try:
            yield stalls
        finally:
            sleeper.stdin.close()
            stalls.longest_s = float(sleeper.stdout.read())
