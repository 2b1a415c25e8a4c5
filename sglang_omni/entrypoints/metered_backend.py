"""Token limits of each key: reserve tokens when an answer starts, and correct them at its end."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, cast

from sglang_omni.admission.controller import estimate_prompt_tokens
from sglang_omni.admission.rate_limit.estimate import (
    TokenCount,
    estimate_chat_tokens,
    estimate_image_tokens,
    estimate_speech_tokens,
)
from sglang_omni.admission.rate_limit.limiter import RateLimiter
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest, ImagesFinished
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest

Events = AsyncGenerator[Event, None]


def meter_tokens(backend: Backend, limiter: RateLimiter) -> Backend:
    """Return a backend that enforces the token limit of each key on every route and session.

    Without a limit, return `backend` itself.
    """
    if limiter.options.tokens_per_minute is None:
        return backend
    return cast(Backend, MeteredBackend(backend, limiter))


class MeteredBackend:
    """A wrapper of a backend that raises `RateLimited` if a key has too few tokens left.

    The error is raised before the first event. Everything else is passed to the backend.
    """

    def __init__(self, backend: Backend, limiter: RateLimiter) -> None:
        self._backend, self._limiter = backend, limiter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def respond(self, request: ChatRequest) -> Events:
        """Answer a chat. Reserve the tokens of its prompt and `max_tokens`."""
        count = self._count(estimate_prompt_tokens(request))
        amount = estimate_chat_tokens(request)
        return self._meter(request.tenant, amount, count, lambda: self._backend.respond(request))

    def speak(self, request: SpeechRequest) -> Events:
        """Read a text aloud. Reserve an estimate of its audio tokens."""
        count, amount = self._count(0), estimate_speech_tokens(request, self._backend.frame_s)
        return self._meter(request.tenant, amount, count, lambda: self._backend.speak(request))

    def stream_speech(self, request: SpeechRequest, text: AsyncGenerator[str, None]) -> Events:
        """Read a text aloud while it is written.

        Its length is unknown, so reserve nothing, and count its tokens at the end.
        """
        count = self._count(0)
        start = lambda: self._backend.stream_speech(request, text)  # noqa: E731
        return self._meter(request.tenant, 0, count, start)

    async def draw(self, request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        """Draw images. Reserve an estimate of their tokens, which an aborted request has used."""
        amount = estimate_image_tokens(request)
        correct_reservation = self._limiter.reserve_tokens(request.tenant, amount)
        used = 0
        try:
            async with aclosing(self._backend.draw(request)) as events:
                async for event in events:
                    used = amount
                    if isinstance(event, ImagesFinished):
                        used = event.usage.input_tokens + event.usage.output_tokens
                    yield event
        finally:
            correct_reservation(used)

    def _count(self, prompt_tokens: int) -> TokenCount:
        return TokenCount(prompt_tokens, self._backend.sample_rate, self._backend.frame_s)

    async def _meter(
        self, key: str | None, amount: int, count: TokenCount, start: Callable[[], Events]
    ) -> Events:
        correct_reservation = self._limiter.reserve_tokens(key, amount)
        try:
            async with aclosing(start()) as events:
                async for event in events:
                    count.add(event)
                    yield event
        finally:
            correct_reservation(count.used)
