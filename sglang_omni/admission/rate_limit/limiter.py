"""What each key has left of its limits. Owned by the event loop."""

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from sglang_omni.admission.rate_limit.bucket import (
    RateStatus,
    TokenBucket,
    new_bucket,
    refill,
    seconds_until,
    status_of,
    take,
)
from sglang_omni.config.rate_limit_options import RateLimitOptions
from sglang_omni.protocol.errors import RateLimited

# When to ask again where another of the key's own requests must end first, which may take any time.
CONCURRENCY_RETRY_S = 1.0
# What a text that is only about to be written needs to be begun.
MIN_TOKENS = 1


@dataclass
class _Account:
    """What one key has left, and how much it has under way."""

    requests: TokenBucket | None
    tokens: TokenBucket | None
    num_requests: int = 0
    num_sessions: int = 0


class RateLimiter:
    """Holds each key to `options`.

    Keys are few and known; whoever has none, where none is asked for, shares one account with
    everybody else, so that nothing is kept for unknown clients. `clock` gives seconds.
    """

    def __init__(
        self, options: RateLimitOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options, self._clock = options, clock
        self._shared = self._new_account()
        self._accounts: dict[str, _Account] = {}

    @property
    def options(self) -> RateLimitOptions:
        """The limits."""
        return self._options

    def begin_request(self, key: str | None) -> Callable[[], None]:
        """Count a request of a key that was checked, None for no key, as begun.

        Returns what ends it. Raises `RateLimited`; nothing is counted then.
        """
        account, most = self._open(key), self._options.concurrent_requests
        if most is not None and account.num_requests >= most:
            raise self._too_many("concurrent_requests", f"{most} requests at a time")
        self._count_request(account)
        account.num_requests += 1

        def end() -> None:
            account.num_requests -= 1

        return end

    def begin_session(self, key: str | None) -> Callable[[], None]:
        """Count a WebSocket as begun, as `begin_request` does a request."""
        account, most = self._open(key), self._options.concurrent_sessions
        if most is not None and account.num_sessions >= most:
            raise self._too_many("concurrent_sessions", f"{most} sessions at a time")
        self._count_request(account)
        account.num_sessions += 1

        def end() -> None:
            account.num_sessions -= 1

        return end

    def reserve_tokens(self, key: str | None, amount: int) -> Callable[[int], None]:
        """Take `amount` tokens from what a key has left.

        Returns a function that is called once, with what was used, and puts the rest back, or
        takes more. Raises `RateLimited`, without a time to come again for more than a whole minute
        holds.
        """
        account = self._account(key)
        if account.tokens is None:
            return _ignore
        bucket = refill(account.tokens, self._clock())
        needed = max(amount, MIN_TOKENS)
        if (wait_s := seconds_until(bucket, needed)) > 0:
            raise _no_tokens(bucket, needed, wait_s)
        account.tokens = take(bucket, amount)

        def settle(used: int) -> None:
            assert account.tokens is not None
            account.tokens = take(refill(account.tokens, self._clock()), used - amount)

        return settle

    def status(self, key: str | None) -> dict[str, RateStatus]:
        """Return what a key has left of `requests` and `tokens`, where these are limited."""
        account, now = self._account(key), self._clock()
        buckets = {"requests": account.requests, "tokens": account.tokens}
        return {name: status_of(refill(bucket, now)) for name, bucket in buckets.items() if bucket}

    def tell_task(self, key: str | None) -> None:
        """Let `current_rate_limits` know, in this task and those that it starts, whose they are."""
        _current.set(lambda: self.status(key))

    def _count_request(self, account: _Account) -> None:
        if account.requests is None:
            return
        bucket = refill(account.requests, self._clock())
        if (wait_s := seconds_until(bucket, 1)) > 0:
            message = f"{bucket.limit} requests a minute are allowed; retry in {wait_s:.2f} s"
            raise RateLimited("requests", message, retry_after_s=wait_s)
        account.requests = take(bucket, 1)

    def _too_many(self, kind: str, what: str) -> RateLimited:
        message = f"{what} are allowed; wait until one of them has ended"
        return RateLimited(kind, message, retry_after_s=CONCURRENCY_RETRY_S)

    def _open(self, key: str | None) -> _Account:
        """Return the account of a key that was checked."""
        if key is None:
            return self._shared
        if key not in self._accounts:
            self._accounts[key] = self._new_account()
        return self._accounts[key]

    def _account(self, key: str | None) -> _Account:
        """Return the account of a key, or the shared one: a tenant may be anything that a client
        without a key presents."""
        return self._accounts.get(key, self._shared) if key else self._shared

    def _new_account(self) -> _Account:
        now, options = self._clock(), self._options
        requests, tokens = options.requests_per_minute, options.tokens_per_minute
        return _Account(
            None if requests is None else new_bucket(requests, now),
            None if tokens is None else new_bucket(tokens, now),
        )


_current: ContextVar[Callable[[], dict[str, RateStatus]]] = ContextVar("rate_limits", default=dict)


def current_rate_limits() -> dict[str, RateStatus]:
    """Return what is left to the key for which this task works; nothing without limits."""
    return _current.get()()


def _no_tokens(bucket: TokenBucket, amount: int, wait_s: float) -> RateLimited:
    left = max(0, math.floor(bucket.level))
    what = f"{bucket.limit} tokens a minute are allowed; this request reserves {amount}"
    if math.isinf(wait_s):
        message = f"{what}, more than it can ever have: lower max_tokens or shorten the request"
        return RateLimited("tokens", message, retry_after_s=None)
    message = f"{what}, and {left} are left; retry in {wait_s:.2f} s, or lower max_tokens"
    return RateLimited("tokens", message, retry_after_s=wait_s)


def _ignore(used: int) -> None:
    """Tokens are not limited."""
