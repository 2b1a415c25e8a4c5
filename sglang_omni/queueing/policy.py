"""Who is admitted to an engine, who waits and who is refused. Pure functions over plain data."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Priority = Literal["realtime", "high", "normal", "low"]
RANKS: dict[Priority, int] = {"realtime": 0, "high": 1, "normal": 2, "low": 3}
# Nobody is told to come back sooner or later than this, in seconds.
RETRY_S = (1.0, 30.0)


@dataclass(frozen=True)
class Reservation:
    """What a request asks of an engine: a slot, and `kv_tokens` of its cache.

    `number` counts the claims of an engine: the lower came earlier.
    """

    number: int
    tenant: str | None = None
    priority: Priority = "normal"
    kv_tokens: int = 0


@dataclass(frozen=True)
class Capacity:
    """What an engine has, and how much it says is taken: slots for requests, tokens of KV cache.

    `kv_tokens` None means that the slots have theirs built in. One tenant has at most `per_tenant`
    of the slots, None for no such bound.
    """

    slots: int
    kv_tokens: int | None = None
    kv_used: int = 0
    per_tenant: int | None = None


def fits(claim: Reservation, active: Collection[Reservation], budget: Capacity) -> bool:
    """Whether an engine has room for a claim beside the active ones.

    What the active ones may come to use counts, or what is in use, whichever is more. A claim on
    more than the whole cache fits when nothing else is there: the engine itself judges it then.
    """
    if len(active) >= budget.slots:
        return False
    if budget.kv_tokens is None or not active:
        return True
    taken = max(sum(one.kv_tokens for one in active), budget.kv_used)
    return taken + claim.kv_tokens <= budget.kv_tokens


def select_next(
    waiting: Collection[Reservation],
    active: Collection[Reservation],
    served: Mapping[str | None, int],
    per_tenant: int | None = None,
) -> Reservation | None:
    """Return whose turn it is: the highest priority, in it the tenant who has least at work, of
    these the one served least recently, then the oldest claim.

    `served` numbers each tenant's latest admission. A tenant who has `per_tenant` already is passed
    over.
    """
    having = Counter(one.tenant for one in active)
    return min(
        (one for one in waiting if per_tenant is None or having[one.tenant] < per_tenant),
        key=lambda one: (
            RANKS[one.priority],
            having[one.tenant],
            served.get(one.tenant, -1),
            one.number,
        ),
        default=None,
    )


def select_rejected(waiting: Sequence[Reservation], length: int) -> Reservation | None:
    """Who leaves a queue that has become longer than `length`, None if it has not.

    The lowest priority goes first, in it the tenant with the most who wait, and the newest of
    these: a tenant who floods the queue refuses itself.
    """
    if len(waiting) <= length:
        return None
    crowd = Counter((one.priority, one.tenant) for one in waiting)
    return max(
        waiting,
        key=lambda one: (RANKS[one.priority], crowd[one.priority, one.tenant], one.number),
    )


def retry_after_s(waiting: int, interval_s: float) -> float:
    """When to come again, in seconds: when those who wait will have been served, if one request
    ends every `interval_s`."""
    least, most = RETRY_S
    if not math.isfinite(interval_s):
        return most
    return min(max((waiting + 1) * interval_s, least), most)
