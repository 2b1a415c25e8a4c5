"""How many replicas of an engine should be up: pure functions over plain data."""

import math
from dataclasses import dataclass, replace

# The share of a replica's capacity that requests may fill on average after a scale-down. What is
# left keeps the pool from growing again at once.
MAX_LOAD_AFTER_SCALE_DOWN = 0.5
# An average below is that of requests which ended long ago.
NEGLIGIBLE_REQUESTS = 0.01
# The load is averaged over this share of the downscale delay.
_AVERAGE_SHARE = 0.2


@dataclass(frozen=True)
class ScalingRules:
    """The bounds of the number of replicas, and the delays of a change in seconds.

    Requests must wait for `upscale_delay_s` before replicas are added, and fewer replicas must be
    enough for `downscale_delay_s` before some are removed. With `min_replicas` 0 the first replica
    is added as soon as a request waits.
    """

    min_replicas: int
    max_replicas: int
    upscale_delay_s: float = 5.0
    downscale_delay_s: float = 300.0


@dataclass(frozen=True)
class PoolLoad:
    """What a pool is doing.

    Attributes:
        num_up: Replicas that take requests.
        num_starting: Replicas that will take requests once they are loaded.
        num_down: Replicas that autoscaling added and that died; they restart.
        in_flight: Requests in flight.
        backlog: Requests that wait, and those that were rejected since the last look.
        slots: The requests that a replica serves at once, None if that is not known.
    """

    num_up: int
    num_starting: int = 0
    num_down: int = 0
    in_flight: int = 0
    backlog: int = 0
    slots: int | None = None


@dataclass(frozen=True)
class LoadHistory:
    """What is remembered of earlier loads. All times are in seconds of one clock.

    Attributes:
        at: When the pool was last looked at, None if never.
        num_up: The replicas that took requests then.
        average_in_flight: The moving average of the requests in flight.
        short_since: Since when replicas have been missing, None while there are enough.
        short_at: When they were last seen to be missing.
        spare_since: Since when fewer replicas have been enough, None while they are not.
    """

    at: float | None = None
    num_up: int = 0
    average_in_flight: float = 0.0
    short_since: float | None = None
    short_at: float = -math.inf
    spare_since: float | None = None


@dataclass(frozen=True)
class ScalingDecision:
    """How many replicas should be up, and why."""

    num_replicas: int
    reason: str


def update_history(
    history: LoadHistory, load: PoolLoad, rules: ScalingRules, now: float
) -> LoadHistory:
    """Return the history with the load of this moment.

    Requests that wait with short pauses count as waiting throughout: a rejected request is seen
    only once. Every change of the number of replicas begins the delays anew.
    """
    if history.num_up != load.num_up:
        history = replace(history, num_up=load.num_up, short_since=None, spare_since=None)
    history = replace(
        history, at=now, average_in_flight=_average_in_flight(history, load, rules, now)
    )
    if _is_short(load, rules):
        since = now if history.short_since is None else history.short_since
        return replace(history, short_since=since, short_at=now, spare_since=None)
    if history.short_since is not None and now - history.short_at > rules.upscale_delay_s:
        history = replace(history, short_since=None)
    if compute_sufficient(history, load, rules) >= load.num_up + load.num_down:
        return replace(history, spare_since=None)
    since = now if history.spare_since is None else history.spare_since
    return replace(history, spare_since=since)


def decide(
    history: LoadHistory, load: PoolLoad, rules: ScalingRules, now: float
) -> ScalingDecision | None:
    """Return how many replicas should be up, None if nothing changes.

    Args:
        history: The history, which includes `load`.
        load: What the pool is doing.
        rules: The bounds and the delays.
        now: The time, in seconds.
    """
    delay_s = 0.0 if _is_off(load, rules) else rules.upscale_delay_s
    if _is_short(load, rules) and _has_lasted(history.short_since, delay_s, now):
        wanted = min(load.num_up + _count_missing(load, rules), rules.max_replicas)
        if wanted > load.num_up + load.num_starting:
            return ScalingDecision(wanted, _explain_shortage(load, rules))
    if _has_lasted(history.spare_since, rules.downscale_delay_s, now) and not load.num_starting:
        return ScalingDecision(
            compute_sufficient(history, load, rules),
            f"{history.average_in_flight:.1f} requests in flight on average",
        )
    return None


def compute_sufficient(history: LoadHistory, load: PoolLoad, rules: ScalingRules) -> int:
    """Return how many replicas are enough for the average load, with room for some more.

    A replica whose slots are not known is full with one request.
    """
    requests_per_replica = (load.slots or 1) * MAX_LOAD_AFTER_SCALE_DOWN
    if not load.in_flight and history.average_in_flight < NEGLIGIBLE_REQUESTS:
        return rules.min_replicas
    return max(rules.min_replicas, math.ceil(history.average_in_flight / requests_per_replica))


def _average_in_flight(
    history: LoadHistory, load: PoolLoad, rules: ScalingRules, now: float
) -> float:
    if history.at is None:
        return float(load.in_flight)
    weight = -math.expm1((history.at - now) / (rules.downscale_delay_s * _AVERAGE_SHARE))
    return history.average_in_flight + weight * (load.in_flight - history.average_in_flight)


def _is_short(load: PoolLoad, rules: ScalingRules) -> bool:
    return load.backlog > 0 or load.num_up < rules.min_replicas


def _is_off(load: PoolLoad, rules: ScalingRules) -> bool:
    """Return whether nothing runs, and nothing has to."""
    return not (rules.min_replicas or load.num_up or load.num_down)


def _count_missing(load: PoolLoad, rules: ScalingRules) -> int:
    """Return how many replicas to add, at least one: as many as serve the requests that wait."""
    for_backlog = math.ceil(load.backlog / load.slots) if load.slots else 1
    return max(1, for_backlog, rules.min_replicas - load.num_up)


def _has_lasted(since: float | None, delay_s: float, now: float) -> bool:
    return since is not None and now - since >= delay_s


def _explain_shortage(load: PoolLoad, rules: ScalingRules) -> str:
    if load.backlog:
        return f"{load.backlog} requests wait or were rejected"
    return f"{load.num_up} of at least {rules.min_replicas} replicas are up"
