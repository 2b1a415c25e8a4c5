"""Token buckets for limits per minute: pure functions over plain data."""

import math
from dataclasses import dataclass, replace

WINDOW_S = 60.0


@dataclass(frozen=True)
class TokenBucket:
    """A bucket of `limit` per minute with `level` left at the time `at`, in seconds.

    It fills evenly, up to `limit`. The level is negative if more was used than was reserved.
    """

    limit: int
    level: float
    at: float


@dataclass(frozen=True)
class RateStatus:
    """The limit, how much of it remains, and the seconds until the bucket is full again."""

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
    """Return the bucket without `amount`. A negative amount refills it, up to its limit."""
    return replace(bucket, level=min(float(bucket.limit), bucket.level - amount))


def compute_wait_s(bucket: TokenBucket, amount: float) -> float:
    """Return the seconds until the bucket has `amount`; infinity if `amount` exceeds its limit."""
    if amount > bucket.limit:
        return math.inf
    return max(0.0, (amount - bucket.level) * WINDOW_S / bucket.limit)


def to_status(bucket: TokenBucket) -> RateStatus:
    """Return the status of a bucket for its client."""
    remaining = max(0, math.floor(bucket.level))
    return RateStatus(bucket.limit, remaining, compute_wait_s(bucket, bucket.limit))
