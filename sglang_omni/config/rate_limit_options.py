"""Options of the rate limits of each key."""

from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, Count


@dataclass(frozen=True, config=OPTION_CONFIG)
class RateLimitOptions:
    """Rate limits of each key, or of all clients together without api_key (429 beyond)."""

    requests_per_minute: Count | None = None
    """Maximum number of requests started per minute; unset: no limit."""

    # The sum of `usage.total_tokens`, where 320 ms of speech are one token. A request reserves an
    # estimate of its prompt and its `max_tokens` at the start, and returns what it did not use.
    tokens_per_minute: Count | None = None
    """Maximum tokens of prompts and answers per minute; unset: no limit."""

    concurrent_requests: Count | None = None
    """Maximum number of concurrent HTTP requests; unset: no limit."""

    concurrent_sessions: Count | None = None
    """Maximum number of concurrent WebSocket sessions; unset: no limit."""

    @property
    def is_unlimited(self) -> bool:
        """Return whether no limit is set."""
        return not any(vars(self).values())
