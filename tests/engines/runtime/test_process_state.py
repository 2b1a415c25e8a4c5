"""A stopped process is told from a sleeping one, and from none."""

import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from sglang_omni.engines.runtime.process_state import is_stopped


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_stopped_process_is_stopped_until_it_goes_on(sleeper: subprocess.Popen[bytes]) -> None:
    assert not is_stopped(sleeper.pid)
    for number, wanted in ((signal.SIGSTOP, True), (signal.SIGCONT, False)):
        sleeper.send_signal(number)
        end = time.monotonic() + 10
        while is_stopped(sleeper.pid) != wanted and time.monotonic() < end:
            time.sleep(0.01)
        assert is_stopped(sleeper.pid) == wanted


def test_a_process_that_is_gone_is_not_stopped(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    sleeper.wait()
    assert not is_stopped(sleeper.pid)
