"""Options of the rate limits of each key."""

from dataclasses import dataclass

from sglang_omni.config.option_types import Count


@dataclass(frozen=True)
class RateLimitOptions:
    """Rate limits of each key. An unset limit is not enforced; beyond a limit requests get 429.

    Without `api_key` all clients share one set of limits.

    Attributes:
        requests_per_minute: Maximum number of requests started per minute.
        tokens_per_minute: Maximum sum of `usage.total_tokens` per minute: tokens of prompts and
            answers, where 320 ms of speech count as one token. A request reserves an estimate of
            its prompt and its `max_tokens` at the start, and returns what it did not use.
        concurrent_requests: Maximum number of concurrent HTTP requests.
        concurrent_sessions: Maximum number of concurrent WebSocket sessions.
    """

    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    concurrent_requests: Count | None = None
    concurrent_sessions: Count | None = None

    @property
    def is_unlimited(self) -> bool:
        """Return whether no limit is set."""
        return not any(vars(self).values())
