"""The admission policy of an engine: pure functions over plain data."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Priority = Literal["realtime", "high", "normal", "low"]
PRIORITY_RANKS: dict[Priority, int] = {"realtime": 0, "high": 1, "normal": 2, "low": 3}
# The shortest and the longest time that a client is told to wait, in seconds.
RETRY_RANGE_S = (1.0, 30.0)


@dataclass(frozen=True)
class Reservation:
    """The capacity that a request needs of an engine: one slot, and `kv_tokens` of KV cache.

    `number` orders the reservations of an engine by arrival.
    """

    number: int
    tenant: str | None = None
    priority: Priority = "normal"
    kv_tokens: int = 0


@dataclass(frozen=True)
class Capacity:
    """The capacity of an engine and the use that it reports: request slots and KV cache tokens.

    `kv_tokens` is None if each slot has its own cache. One tenant may use at most `per_tenant`
    slots; None means no such limit.
    """

    slots: int
    kv_tokens: int | None = None
    kv_tokens_used: int = 0
    per_tenant: int | None = None


def can_admit(
    reservation: Reservation, active: Collection[Reservation], capacity: Capacity
) -> bool:
    """Return whether an engine has capacity for a reservation besides the active ones.

    The used cache is the larger of the active reservations and the engine's report. A reservation
    larger than the cache is admitted when no other is active, and the engine decides on it.
    """
    if len(active) >= capacity.slots:
        return False
    if capacity.kv_tokens is None or not active:
        return True
    used = max(sum(other.kv_tokens for other in active), capacity.kv_tokens_used)
    return used + reservation.kv_tokens <= capacity.kv_tokens


def select_next(
    waiting: Collection[Reservation],
    active: Collection[Reservation],
    last_admissions: Mapping[str | None, int],
    per_tenant: int | None = None,
) -> Reservation | None:
    """Return the waiting reservation to admit next, or None.

    The order is: highest priority, then the tenant with the fewest active reservations, then the
    tenant that was served least recently, then arrival. `last_admissions` has the number of each
    tenant's latest admission. A tenant with `per_tenant` active reservations is skipped.
    """
    num_active = Counter(reservation.tenant for reservation in active)
    return min(
        (
            reservation
            for reservation in waiting
            if per_tenant is None or num_active[reservation.tenant] < per_tenant
        ),
        key=lambda reservation: (
            PRIORITY_RANKS[reservation.priority],
            num_active[reservation.tenant],
            last_admissions.get(reservation.tenant, -1),
            reservation.number,
        ),
        default=None,
    )


def select_rejected(waiting: Sequence[Reservation], max_length: int) -> Reservation | None:
    """Return the reservation to reject from a queue longer than `max_length`, or None.

    The order is: lowest priority, then the tenant with the most waiting reservations, then the
    newest. So a tenant that floods the queue displaces its own requests.
    """
    if len(waiting) <= max_length:
        return None
    num_waiting = Counter((reservation.priority, reservation.tenant) for reservation in waiting)
    return max(
        waiting,
        key=lambda reservation: (
            PRIORITY_RANKS[reservation.priority],
            num_waiting[reservation.priority, reservation.tenant],
            reservation.number,
        ),
    )


def estimate_retry_after_s(num_waiting: int, interval_s: float) -> float:
    """Return how many seconds a client should wait before it retries.

    It is the time to serve all waiting requests if one request ends every `interval_s` seconds.
    """
    min_s, max_s = RETRY_RANGE_S
    if not math.isfinite(interval_s):
        return max_s
    return min(max((num_waiting + 1) * interval_s, min_s), max_s)
