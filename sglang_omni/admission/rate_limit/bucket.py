"""A limit per minute as a token bucket: pure functions over plain data."""

import math
from dataclasses import dataclass, replace

WINDOW_S = 60.0


@dataclass(frozen=True)
class TokenBucket:
    """What is left of `limit` per minute: `level` at the time `at`, in seconds.

    It fills evenly, up to `limit`. What was used beyond its reservation may make it negative.
    """

    limit: int
    level: float
    at: float


@dataclass(frozen=True)
class RateStatus:
    """What a client is told: the limit, what is left of it, and in how many seconds it is full."""

    limit: int
    remaining: int
    reset_s: float


def new_bucket(limit: int, now: float) -> TokenBucket:
    """Return a full bucket."""
    return TokenBucket(limit, float(limit), now)


def refill(bucket: TokenBucket, now: float) -> TokenBucket:
    """Return the bucket as it is at `now`."""
    added = (now - bucket.at) * bucket.limit / WINDOW_S
    return TokenBucket(bucket.limit, min(float(bucket.limit), bucket.level + added), now)


def take(bucket: TokenBucket, amount: float) -> TokenBucket:
    """Return the bucket less `amount`, or with more in it for a negative one; never overfull."""
    return replace(bucket, level=min(float(bucket.limit), bucket.level - amount))


def seconds_until(bucket: TokenBucket, amount: float) -> float:
    """Return when the bucket has `amount`, in seconds; infinity if it never has so much."""
    if amount > bucket.limit:
        return math.inf
    return max(0.0, (amount - bucket.level) * WINDOW_S / bucket.limit)


def status_of(bucket: TokenBucket) -> RateStatus:
    """Return what a client is told of a bucket."""
    remaining = max(0, math.floor(bucket.level))
    return RateStatus(bucket.limit, remaining, seconds_until(bucket, bucket.limit))
