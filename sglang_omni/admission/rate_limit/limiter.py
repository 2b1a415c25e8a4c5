"""Rate limits per API key. Owned by the event loop."""

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from sglang_omni.admission.rate_limit.bucket import (
    RateStatus,
    TokenBucket,
    compute_wait_s,
    new_bucket,
    refill,
    take,
    to_status,
)
from sglang_omni.config.rate_limit_options import RateLimitOptions
from sglang_omni.protocol.errors import RateLimited

# The time to retry after when another request of the same key must end first, which may take long.
CONCURRENCY_RETRY_S = 1.0
# A text that is not yet written reserves this many tokens to start.
MIN_RESERVED_TOKENS = 1


@dataclass
class _Account:
    """The buckets of one key, and its current requests and sessions."""

    requests: TokenBucket | None
    tokens: TokenBucket | None
    num_requests: int = 0
    num_sessions: int = 0


class RateLimiter:
    """Enforce the limits of `options` for each key.

    Keys are few and known. Clients without a key, on a server that requires none, share one
    account, so nothing is stored for unknown clients. `clock` returns seconds.
    """

    def __init__(
        self, options: RateLimitOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options, self._clock = options, clock
        self._shared = self._new_account()
        self._accounts: dict[str, _Account] = {}

    @property
    def options(self) -> RateLimitOptions:
        """Return the limits."""
        return self._options

    def begin_request(self, key: str | None) -> Callable[[], None]:
        """Count a new request of an authenticated key, or of no key (None).

        Returns a function that ends the request. Raises `RateLimited`, and then counts nothing.
        """
        account, max_requests = self._checked_account(key), self._options.concurrent_requests
        if max_requests is not None and account.num_requests >= max_requests:
            raise self._concurrency_error("concurrent_requests", f"{max_requests} requests")
        self._count_request(account)
        account.num_requests += 1

        def end() -> None:
            account.num_requests -= 1

        return end

    def begin_session(self, key: str | None) -> Callable[[], None]:
        """Count a new WebSocket session, as `begin_request` counts a request."""
        account, max_sessions = self._checked_account(key), self._options.concurrent_sessions
        if max_sessions is not None and account.num_sessions >= max_sessions:
            raise self._concurrency_error("concurrent_sessions", f"{max_sessions} sessions")
        self._count_request(account)
        account.num_sessions += 1

        def end() -> None:
            account.num_sessions -= 1

        return end

    def reserve_tokens(self, key: str | None, amount: int) -> Callable[[int], None]:
        """Reserve `amount` tokens of a key.

        Returns a function to call once with the number of tokens used. It returns the rest of the
        reservation, or takes more. Raises `RateLimited`; it has no retry time if `amount` exceeds
        the limit per minute.
        """
        account = self._account(key)
        if account.tokens is None:
            return _ignore
        bucket = refill(account.tokens, self._clock())
        needed = max(amount, MIN_RESERVED_TOKENS)
        if (wait_s := compute_wait_s(bucket, needed)) > 0:
            raise _tokens_error(bucket, needed, wait_s)
        account.tokens = take(bucket, amount)

        def record_usage(used: int) -> None:
            assert account.tokens is not None
            account.tokens = take(refill(account.tokens, self._clock()), used - amount)

        return record_usage

    def status(self, key: str | None) -> dict[str, RateStatus]:
        """Return the status of a key's `requests` and `tokens`, as far as they are limited."""
        account, now = self._account(key), self._clock()
        buckets = {"requests": account.requests, "tokens": account.tokens}
        return {name: to_status(refill(bucket, now)) for name, bucket in buckets.items() if bucket}

    def bind_to_task(self, key: str | None) -> None:
        """Make `current_rate_limits` return this key's status in this task and its child tasks."""
        _current.set(lambda: self.status(key))

    def _count_request(self, account: _Account) -> None:
        if account.requests is None:
            return
        bucket = refill(account.requests, self._clock())
        if (wait_s := compute_wait_s(bucket, 1)) > 0:
            message = f"{bucket.limit} requests per minute are allowed; retry in {wait_s:.2f} s"
            raise RateLimited("requests", message, retry_after_s=wait_s)
        account.requests = take(bucket, 1)

    def _concurrency_error(self, kind: str, limit: str) -> RateLimited:
        message = f"{limit} at a time are allowed; wait until one of them has ended"
        return RateLimited(kind, message, retry_after_s=CONCURRENCY_RETRY_S)

    def _checked_account(self, key: str | None) -> _Account:
        """Return the account of an authenticated key."""
        if key is None:
            return self._shared
        if key not in self._accounts:
            self._accounts[key] = self._new_account()
        return self._accounts[key]

    def _account(self, key: str | None) -> _Account:
        """Return the account of a known key, or the shared one.

        Without authentication the tenant is whatever a client sends.
        """
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
    """Return the rate limits of the key that this task serves; empty without limits."""
    return _current.get()()


def _tokens_error(bucket: TokenBucket, amount: int, wait_s: float) -> RateLimited:
    num_left = max(0, math.floor(bucket.level))
    limit = f"{bucket.limit} tokens per minute are allowed; this request needs {amount}"
    if math.isinf(wait_s):
        message = f"{limit}, which can never be allowed: lower max_tokens or shorten the request"
        return RateLimited("tokens", message, retry_after_s=None)
    message = f"{limit}, and {num_left} are left; retry in {wait_s:.2f} s, or lower max_tokens"
    return RateLimited("tokens", message, retry_after_s=wait_s)


def _ignore(used: int) -> None:
    """Do nothing, because tokens are not limited."""
