"""Options of the limits of each key."""

from dataclasses import dataclass

from sglang_omni.config.option_types import Count


@dataclass(frozen=True)
class RateLimitOptions:
    """What each key may ask for; an unset limit does not exist.

    A key may begin `requests_per_minute`, and have `concurrent_requests` over HTTP and
    `concurrent_sessions` over WebSockets at a time. `tokens_per_minute` counts what
    `usage.total_tokens` of its answers does: tokens of prompts and answers, and 320 ms of speech
    as one. A request reserves an estimate of its prompt and its `max_tokens` at the start, and
    gets back what it did not use. Beyond a limit it is refused (429). Without `api_key` everybody
    shares one set of limits.
    """

    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    concurrent_requests: Count | None = None
    concurrent_sessions: Count | None = None

    @property
    def is_unlimited(self) -> bool:
        """Whether there is no limit at all."""
        return not any(vars(self).values())
