"""How many replicas should be up: growth by waiting requests, and less when fewer are enough."""

from collections.abc import Iterable

import pytest

from sglang_omni.engines.runtime.scaling_policy import (
    LoadHistory,
    PoolLoad,
    ScalingDecision,
    ScalingRules,
    compute_sufficient,
    decide,
    update_history,
)

RULES = ScalingRules(1, 4, upscale_delay_s=5.0, downscale_delay_s=100.0)
BUSY = PoolLoad(num_up=1, in_flight=8, backlog=3, slots=8)
CALM = PoolLoad(num_up=1, in_flight=8, slots=8)


def run(
    loads: Iterable[tuple[float, PoolLoad]], rules: ScalingRules = RULES
) -> list[ScalingDecision | None]:
    """Return the decision at each time."""
    history, decisions = LoadHistory(), []
    for now, load in loads:
        history = update_history(history, load, rules, now)
        decisions.append(decide(history, load, rules, now))
    return decisions


def numbers(loads: Iterable[tuple[float, PoolLoad]], rules: ScalingRules = RULES) -> list[int]:
    """Return the number of replicas decided at each time, 0 where nothing changes."""
    return [decision.num_replicas if decision else 0 for decision in run(loads, rules)]


def test_requests_that_wait_add_a_replica_after_the_delay() -> None:
    assert numbers((second, BUSY) for second in range(7)) == [0, 0, 0, 0, 0, 2, 2]
    [*_, decision] = run((second, BUSY) for second in range(6))
    assert decision == ScalingDecision(2, "3 requests wait or were rejected")


def test_without_a_delay_the_first_look_decides() -> None:
    assert numbers([(0, BUSY)], ScalingRules(1, 4, upscale_delay_s=0.0)) == [2]


def test_a_short_queue_adds_nothing() -> None:
    loads = [(0, BUSY), (3, BUSY), (4, CALM), (9, CALM), (10, BUSY), (14, BUSY)]
    assert numbers(loads) == [0] * 6


def test_requests_that_are_rejected_now_and_then_wait_throughout() -> None:
    loads = [(0, BUSY), (1, CALM), (4, BUSY), (5, CALM), (8, BUSY)]
    assert numbers(loads) == [0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("backlog", "slots", "num_replicas"),
    [(1, 8, 2), (8, 8, 2), (9, 8, 3), (99, 8, 4), (99, None, 2)],
)
def test_a_long_queue_adds_as_many_as_serve_it(
    backlog: int, slots: int | None, num_replicas: int
) -> None:
    load = PoolLoad(num_up=1, in_flight=8, backlog=backlog, slots=slots)
    assert numbers([(0, load), (5, load)]) == [0, num_replicas]


def test_replicas_that_start_are_waited_for() -> None:
    started = PoolLoad(num_up=1, num_starting=1, in_flight=8, backlog=3, slots=8)
    assert numbers([(0, BUSY), (5, BUSY), (6, started), (60, started)]) == [0, 2, 0, 0]
    longer = PoolLoad(num_up=1, num_starting=1, in_flight=8, backlog=30, slots=8)
    assert numbers([(0, longer), (5, longer)]) == [0, 4]


def test_after_a_change_the_delay_begins_anew() -> None:
    second = PoolLoad(num_up=2, in_flight=16, backlog=3, slots=8)
    assert numbers([(0, BUSY), (5, BUSY), (6, second), (10, second), (11, second)]) == [
        *(0, 2, 0, 0, 3)
    ]


def test_there_are_never_more_than_the_bound() -> None:
    full = PoolLoad(num_up=4, in_flight=32, backlog=50, slots=8)
    assert numbers([(0, full), (5, full), (500, full)]) == [0, 0, 0]


def test_a_replica_that_is_down_is_replaced_without_a_queue() -> None:
    down = PoolLoad(num_up=1, slots=8)
    rules = ScalingRules(2, 4, upscale_delay_s=5.0)
    [_, decision] = run([(0, down), (5, down)], rules)
    assert decision == ScalingDecision(2, "1 of at least 2 replicas are up")


def test_fewer_are_enough_after_the_delay_and_all_of_them_leave_at_once() -> None:
    idle = PoolLoad(num_up=4, slots=8)
    assert numbers([(0, idle), (99, idle), (100, idle)]) == [0, 0, 1]
    assert numbers([(0, idle), (100, idle)], ScalingRules(2, 4, downscale_delay_s=100.0)) == [0, 2]


def test_half_of_what_remains_stays_free() -> None:
    for in_flight, num_replicas in ((4, 1), (5, 2), (8, 2), (9, 0), (20, 0)):
        load = PoolLoad(num_up=3, in_flight=in_flight, slots=8)
        assert numbers([(0, load), (100, load)]) == [0, num_replicas]


def test_after_a_scale_down_nothing_grows_again_by_the_same_load() -> None:
    """The load that remains fits: there is no queue, and nothing to remove."""
    load = PoolLoad(num_up=1, in_flight=4, slots=8)
    assert numbers((second, load) for second in range(0, 1000, 10)) == [0] * 100


def test_load_between_resets_the_delay() -> None:
    idle, busy = PoolLoad(num_up=2, slots=8), PoolLoad(num_up=2, in_flight=16, slots=8)
    times = [(0, idle), (50, idle), (60, busy), (70, busy), (110, idle), (200, idle)]
    assert numbers(times) == [0] * 6


def test_engines_without_known_slots_count_one_request_for_each() -> None:
    """A load of 0.4 on average fits one encoder with room, one of 0.8 does not."""

    def sampled(share: int) -> list[tuple[float, PoolLoad]]:
        return [
            (second, PoolLoad(num_up=2, in_flight=int(second % 10 < share)))
            for second in range(400)
        ]

    assert 1 in numbers(sampled(4))
    assert 1 not in numbers(sampled(8))


def test_one_that_died_is_removed_when_it_is_not_needed() -> None:
    load = PoolLoad(num_up=1, num_down=1, in_flight=1, slots=8)
    assert numbers([(0, load), (100, load)]) == [0, 1]
    needed = PoolLoad(num_up=1, num_down=1, in_flight=8, slots=8)
    assert numbers([(0, needed), (100, needed)]) == [0, 0]


def test_nothing_is_removed_while_something_starts() -> None:
    load = PoolLoad(num_up=2, num_starting=1, slots=8)
    assert numbers([(0, load), (200, load)]) == [0, 0]


def test_the_minimum_is_always_sufficient_or_more() -> None:
    assert compute_sufficient(LoadHistory(), PoolLoad(num_up=0), ScalingRules(3, 4)) == 3


ON_DEMAND = ScalingRules(0, 1, upscale_delay_s=5.0, downscale_delay_s=100.0)


def test_without_a_minimum_the_first_request_adds_a_replica_at_once() -> None:
    asleep, waiting = PoolLoad(num_up=0), PoolLoad(num_up=0, backlog=1)
    assert numbers([(0, asleep), (500, asleep), (501, waiting)], ON_DEMAND) == [0, 0, 1]
    starting = PoolLoad(num_up=0, num_starting=1, backlog=1)
    assert numbers([(0, waiting), (1, starting), (20, starting)], ON_DEMAND) == [1, 0, 0]


def test_without_a_minimum_a_replica_is_removed_some_time_after_its_last_request() -> None:
    busy, idle = PoolLoad(num_up=1, in_flight=1), PoolLoad(num_up=1)
    loads = [(second, busy if second < 60 else idle) for second in range(400)]
    decisions = run(loads, ON_DEMAND)
    removed_at = next(second for second, decision in enumerate(decisions) if decision)
    assert decisions[removed_at] == ScalingDecision(0, "0.0 requests in flight on average")
    # The average takes almost as long to fall as fewer must be enough.
    assert 60 + 100 < removed_at < 60 + 2 * 100


def test_a_request_in_flight_keeps_the_last_replica() -> None:
    idle, busy = PoolLoad(num_up=1), PoolLoad(num_up=1, in_flight=1)
    assert numbers([(0, idle), (99.9, idle), (100, busy)], ON_DEMAND) == [0, 0, 0]


def test_one_that_died_is_not_added_a_second_time() -> None:
    down = PoolLoad(num_up=0, num_down=1, backlog=1)
    assert numbers([(0, down), (1, down)], ON_DEMAND) == [0, 0]
