"""Threads and processes inherit how exact their timers are."""

import subprocess
import sys
import threading

from sglang_omni.system import timer_slack as timers
from sglang_omni.system.timer_slack import (
    EXACT_NS,
    RELAXED_NS,
    relaxed_timers,
    restore_exact_timers,
)

SAY = "from tests.system.test_timer_slack import slack; print(slack())"


def slack() -> int:
    return timers._prctl(timers._PR_GET_TIMERSLACK)


def of_a_thread(prepare: object = None) -> int:
    found: list[int] = []

    def run() -> None:
        if prepare is restore_exact_timers:
            restore_exact_timers()
        found.append(slack())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_what_is_started_in_the_body_is_relaxed_until_it_wants_otherwise() -> None:
    before = slack()
    with relaxed_timers():
        assert of_a_thread() == RELAXED_NS
        assert of_a_thread(restore_exact_timers) == EXACT_NS
        process = subprocess.run([sys.executable, "-c", SAY], capture_output=True, text=True)
    assert process.stdout == f"{RELAXED_NS}\n", process.stderr
    assert slack() == of_a_thread() == before
