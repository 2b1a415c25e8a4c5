"""How long images rest between their steps."""

import threading
import time

from sglang_omni.engines.image.rest import Rest
from sglang_omni.engines.runtime.shared_count import SharedCount


def count_of(number: int) -> SharedCount:
    count = SharedCount()
    count.add(number)
    return count


def test_a_rest_is_a_share_of_the_step_before() -> None:
    rest = Rest(count_of(1), 0.5)
    rest.end_step(0.2)
    assert 0.09 <= rest.finish() < 0.2


def test_time_that_is_over_already_counts() -> None:
    rest = Rest(count_of(1), 1.0)
    rest.end_step(0.05)
    time.sleep(0.06)
    assert rest.finish() < 0.01


def test_the_first_step_waits_for_nothing() -> None:
    assert Rest(count_of(1), 1.0).finish() < 0.01


def test_without_answers_that_wait_there_is_no_rest() -> None:
    for waiting in (count_of(0), None):
        rest = Rest(waiting, 1.0)
        rest.end_step(10.0)
        assert rest.finish() < 0.01


def test_a_share_of_nothing_is_no_rest() -> None:
    rest = Rest(count_of(1), 0.0)
    rest.end_step(10.0)
    assert rest.finish() < 0.01


def test_a_rest_ends_when_no_answer_waits_any_more() -> None:
    waiting = count_of(1)
    rest = Rest(waiting, 1.0)
    rest.end_step(30.0)
    threading.Timer(0.05, waiting.add, (-1,)).start()
    assert 0.04 <= rest.finish() < 5
