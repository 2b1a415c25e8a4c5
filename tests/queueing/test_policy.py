"""Who is admitted, who waits, who is refused."""

import math
from typing import cast

import pytest

from sglang_omni.queueing.policy import (
    Capacity,
    Priority,
    Reservation,
    can_admit,
    estimate_retry_after_s,
    select_next,
    select_rejected,
)


def claims(*asked: str) -> list[Reservation]:
    """Claims in the order they came, each as "tenant:priority"."""
    made = []
    for number, one in enumerate(asked):
        tenant, priority = one.split(":")
        made.append(Reservation(number, tenant, cast(Priority, priority)))
    return made


@pytest.mark.parametrize(
    ("active", "budget", "room"),
    [
        ([], Capacity(1), True),
        ([Reservation(0)], Capacity(1), False),
        ([Reservation(0)], Capacity(2), True),
        ([Reservation(0, kv_tokens=50)], Capacity(9, 100), True),
        ([Reservation(0, kv_tokens=51)], Capacity(9, 100), False),
        ([Reservation(0, kv_tokens=10)], Capacity(9, 100, kv_tokens_used=51), False),
        # An engine that is empty judges for itself what is too large for it.
        ([], Capacity(9, 20), True),
    ],
)
def test_a_claim_fits_into_what_slots_and_cache_leave(
    active: list[Reservation], budget: Capacity, room: bool
) -> None:
    assert can_admit(Reservation(9, kv_tokens=50), active, budget) == room


def test_priority_comes_first_then_the_tenant_who_has_least_then_the_oldest() -> None:
    waiting = claims("a:normal", "a:high", "b:normal", "b:high", "c:low", "a:realtime")
    active = claims("a:normal", "a:normal", "b:normal")
    served = []
    while turn := select_next(waiting, active, {}):
        waiting.remove(turn)
        active.append(turn)
        served.append(f"{turn.tenant}:{turn.priority}")
    assert served == ["a:realtime", "b:high", "a:high", "b:normal", "a:normal", "c:low"]


def test_two_tenants_share_what_becomes_free_however_many_one_sends() -> None:
    waiting = claims(*["flood:normal"] * 20, "b:normal", "b:normal", "b:normal")
    active: list[Reservation] = []
    for _ in range(6):
        turn = select_next(waiting, active, {})
        assert turn is not None
        waiting.remove(turn)
        active.append(turn)
    assert sum(one.tenant == "b" for one in active) == 3


def test_of_those_who_have_as_much_the_one_served_least_recently_is_next() -> None:
    """Where one slot is free at a time nobody has anything at work, whoever was just served."""
    waiting = claims(*["flood:normal"] * 3, "b:normal", "b:normal")
    served: dict[str | None, int] = {"flood": 0}
    turns = []
    for number in range(1, 6):
        turn = select_next(waiting, [], served)
        assert turn is not None
        waiting.remove(turn)
        served[turn.tenant or ""] = number
        turns.append(turn.tenant)
    assert turns == ["b", "flood", "b", "flood", "flood"]


@pytest.mark.parametrize(
    ("waiting", "gone"),
    [
        (["a:normal", "b:normal"], None),
        (["a:normal", "b:normal", "c:normal"], 2),
        (["a:low", "b:normal", "c:normal"], 0),
        (["a:normal", "b:realtime", "c:normal"], 2),
        # The flood loses its own newest, though somebody else came after it.
        (["flood:normal", "flood:normal", "b:normal"], 1),
    ],
)
def test_a_full_queue_turns_away_the_lowest_and_the_greediest(
    waiting: list[str], gone: int | None
) -> None:
    turned = select_rejected(claims(*waiting), max_length=2)
    assert (turned.number if turned else None) == gone


def test_nobody_queues_where_there_is_no_queue() -> None:
    [only] = claims("a:realtime")
    assert select_rejected([only], max_length=0) is only


@pytest.mark.parametrize(
    ("waiting", "interval_s", "seconds"),
    [(0, 0.1, 1.0), (9, 0.5, 5.0), (99, 2.0, 30.0), (0, math.inf, 30.0)],
)
def test_come_again_when_those_who_wait_are_served(
    waiting: int, interval_s: float, seconds: float
) -> None:
    assert estimate_retry_after_s(waiting, interval_s) == seconds
