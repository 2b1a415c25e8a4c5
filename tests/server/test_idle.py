"""A server that nobody asks anything leaves the machine alone."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.server.running import RunningServer, wait_until

WATCHED_S = 15.0
# Measured: 1.7 % and 50 a second. gloo's threads alone wake 700 times a second if they are let.
MOST_OF_A_CORE = 0.05
MOST_WAKES = 200.0


def threads(processes: list[psutil.Process]) -> Iterator[Path]:
    for process in processes:
        yield from Path(f"/proc/{process.pid}/task").iterdir()


def used(processes: list[psutil.Process]) -> tuple[float, Counter[str]]:
    """The seconds of a core that the processes have used, and how often each thread has slept."""
    seconds, wakes = 0.0, Counter[str]()
    for thread in threads(processes):
        # After "PID (NAME)" the state is the first field, time in user and kernel mode 12 and 13.
        fields = (thread / "stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        status = (thread / "status").read_text().partition("\nvoluntary_ctxt_switches:")[2]
        wakes[thread.as_posix()] = int(status.split()[0])
    return seconds, wakes


@pytest.mark.extended
@pytest.mark.alone
def test_an_idle_server_uses_hardly_any_of_a_core(default_server: RunningServer) -> None:
    wait_until(default_server.is_idle, 30, "idle")
    time.sleep(2)
    server = psutil.Process(default_server.pid)
    processes = [server, *server.children(recursive=True)]
    began, before, sleeps = time.monotonic(), *used(processes)
    time.sleep(WATCHED_S)
    after, slept = used(processes)
    seconds = time.monotonic() - began
    assert (after - before) / seconds < MOST_OF_A_CORE
    rates = {thread: (slept[thread] - sleeps[thread]) / seconds for thread in slept}
    assert sum(rates.values()) < MOST_WAKES, sorted(rates.items(), key=lambda one: -one[1])[:10]
