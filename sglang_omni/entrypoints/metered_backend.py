"""The tokens of each key: reserved when an answer begins, corrected when it ends."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, cast

from sglang_omni.admission.controller import estimate_prompt_tokens
from sglang_omni.admission.rate_limit.estimate import (
    TokenCount,
    estimate_chat_tokens,
    estimate_speech_tokens,
)
from sglang_omni.admission.rate_limit.limiter import RateLimiter
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest

Events = AsyncGenerator[Event, None]


def meter_tokens(backend: Backend, limiter: RateLimiter) -> Backend:
    """Return `backend`, holding each key to its tokens on every route and in every session; the
    same one where tokens are not limited."""
    if limiter.options.tokens_per_minute is None:
        return backend
    return cast(Backend, MeteredBackend(backend, limiter))


class MeteredBackend:
    """A backend whose answers raise `RateLimited` before their first event where their key has too
    few tokens left. In everything else it is the one that it stands in front of."""

    def __init__(self, backend: Backend, limiter: RateLimiter) -> None:
        self._backend, self._limiter = backend, limiter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def respond(self, request: ChatRequest) -> Events:
        """Answer a chat; it reserves its prompt and `max_tokens`."""
        count = self._count(estimate_prompt_tokens(request))
        amount = estimate_chat_tokens(request)
        return self._meter(request.tenant, amount, count, lambda: self._backend.respond(request))

    def speak(self, request: SpeechRequest) -> Events:
        """Read a text aloud; it reserves about as much as its text takes."""
        count, amount = self._count(0), estimate_speech_tokens(request, self._backend.frame_s)
        return self._meter(request.tenant, amount, count, lambda: self._backend.speak(request))

    def stream_speech(self, request: SpeechRequest, text: AsyncGenerator[str, None]) -> Events:
        """Read a text aloud while it is written: nobody knows how long it will be, so it reserves
        nothing and is counted at its end."""
        count = self._count(0)
        begin = lambda: self._backend.stream_speech(request, text)  # noqa: E731
        return self._meter(request.tenant, 0, count, begin)

    def _count(self, prompt_tokens: int) -> TokenCount:
        return TokenCount(prompt_tokens, self._backend.sample_rate, self._backend.frame_s)

    async def _meter(
        self, key: str | None, amount: int, count: TokenCount, begin: Callable[[], Events]
    ) -> Events:
        settle = self._limiter.reserve_tokens(key, amount)
        try:
            async with aclosing(begin()) as events:
                async for event in events:
                    count.add(event)
                    yield event
        finally:
            settle(count.used)
