"""Who is admitted, who waits, who is refused."""

import math

import pytest

from sglang_omni.admission.policy import (
    Budget,
    Claim,
    fits,
    next_up,
    retry_after_s,
    turn_away,
)


def claims(*asked: str) -> list[Claim]:
    """Claims in the order they came, each as "tenant:priority"."""
    pairs = [one.split(":") for one in asked]
    return [Claim(number, tenant, priority) for number, (tenant, priority) in enumerate(pairs)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("active", "budget", "room"),
    [
        ([], Budget(1), True),
        ([Claim(0)], Budget(1), False),
        ([Claim(0)], Budget(2), True),
        ([Claim(0, kv_tokens=50)], Budget(9, 100), True),
        ([Claim(0, kv_tokens=51)], Budget(9, 100), False),
        ([Claim(0, kv_tokens=10)], Budget(9, 100, kv_used=51), False),
        # An engine that is empty judges for itself what is too large for it.
        ([], Budget(9, 20), True),
    ],
)
def test_a_claim_fits_into_what_slots_and_cache_leave(
    active: list[Claim], budget: Budget, room: bool
) -> None:
    assert fits(Claim(9, kv_tokens=50), active, budget) == room


def test_priority_comes_first_then_the_tenant_who_has_least_then_the_oldest() -> None:
    waiting = claims("a:normal", "a:high", "b:normal", "b:high", "c:low", "a:realtime")
    active = claims("a:normal", "a:normal", "b:normal")
    served = []
    while turn := next_up(waiting, active, {}):
        waiting.remove(turn)
        active.append(turn)
        served.append(f"{turn.tenant}:{turn.priority}")
    assert served == ["a:realtime", "b:high", "a:high", "b:normal", "a:normal", "c:low"]


def test_two_tenants_share_what_becomes_free_however_many_one_sends() -> None:
    waiting = claims(*["flood:normal"] * 20, "b:normal", "b:normal", "b:normal")
    active: list[Claim] = []
    for _ in range(6):
        turn = next_up(waiting, active, {})
        assert turn is not None
        waiting.remove(turn)
        active.append(turn)
    assert sum(one.tenant == "b" for one in active) == 3


def test_of_those_who_have_as_much_the_one_served_least_recently_is_next() -> None:
    """Where one slot is free at a time nobody has anything at work, whoever was just served."""
    waiting, served = claims(*["flood:normal"] * 3, "b:normal", "b:normal"), {"flood": 0}
    turns = []
    for number in range(1, 6):
        turn = next_up(waiting, [], served)
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
    turned = turn_away(claims(*waiting), length=2)
    assert (turned.number if turned else None) == gone


def test_nobody_queues_where_there_is_no_queue() -> None:
    [only] = claims("a:realtime")
    assert turn_away([only], length=0) is only


@pytest.mark.parametrize(
    ("waiting", "interval_s", "seconds"),
    [(0, 0.1, 1.0), (9, 0.5, 5.0), (99, 2.0, 30.0), (0, math.inf, 30.0)],
)
def test_come_again_when_those_who_wait_are_served(
    waiting: int, interval_s: float, seconds: float
) -> None:
    assert retry_after_s(waiting, interval_s) == seconds
