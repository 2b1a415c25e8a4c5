"""Runs at most one response at a time."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.realtime.context import build_messages, drop_oldest_half
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import Item
from sglang_omni.entrypoints.realtime.response import CancelReason, Response, ResponseConfig
from sglang_omni.entrypoints.realtime.session_config import AnswerConfig
from sglang_omni.entrypoints.realtime.transcriber import Transcriber
from sglang_omni.entrypoints.requests.reading import build_answer_reading
from sglang_omni.entrypoints.requests.voices import choose_voice
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.pipeline.request import ChatRequest, Event, Voice
from sglang_omni.protocol.errors import ContextExceeded, InvalidRequest
from sglang_omni.protocol.sampling import SamplingParams


class ResponseActive(InvalidRequest):
    """Another response is active."""

    code = "conversation_already_has_active_response"


class NoActiveResponse(InvalidRequest):
    """There is no active response to cancel."""

    code = "response_cancel_not_active"


@dataclass(frozen=True)
class ResponseInput:
    """What a response is created from.

    Attributes:
        config: Settings of the response.
        items: Its context.
        drops_oldest: Whether the oldest items may be left out if not all fit the context.
    """

    config: ResponseConfig
    items: Sequence[Item]
    drops_oldest: bool


class ResponseController:
    """Holds the active response. Calls `on_idle` when a response has ended and none follows."""

    def __init__(
        self,
        backend: Backend,
        sender: EventSender,
        transcriber: Transcriber,
        tenant: str | None,
        on_idle: Callable[[], None],
        trace_recorder: TraceRecorder,
    ) -> None:
        self._backend, self._sender, self._transcriber = backend, sender, transcriber
        self._tenant, self._on_idle, self._trace_recorder = tenant, on_idle, trace_recorder
        self._active: Response | None = None
        self.idle = asyncio.Event()
        """Set while no response is active."""
        self.idle.set()

    @property
    def has_active_response(self) -> bool:
        """Return whether a response is active."""
        return self._get_active() is not None

    def start(self, response_input: ResponseInput) -> None:
        """Start a response. Raises `ResponseActive`."""
        if (active := self._get_active()) is not None:
            raise ResponseActive(
                f"response {active.config.id} is active; cancel it or wait for response.done"
            )
        sample_rate = self._backend.sample_rate
        response = Response(response_input.config, self._sender, sample_rate, self._trace_recorder)
        self._transcriber.pause()
        self._active = response
        self.idle.clear()
        task = response.start(self._generate(response_input))
        task.add_done_callback(partial(self._on_task_done, response))

    async def cancel(self, reason: CancelReason, response_id: str | None = None) -> None:
        """Cancel the active response. Return when the backend has stopped.

        Raises:
            NoActiveResponse: No response is active, or another one than `response_id`.
        """
        active = self._get_active()
        if active is None or response_id not in (None, active.config.id):
            raise NoActiveResponse("no such response is active", param="response_id")
        await active.cancel(reason)

    async def close(self) -> None:
        """Stop the active response without another event."""
        if self._active is not None:
            await self._active.abort()

    def _get_active(self) -> Response | None:
        """Return the active response; None once its last event is queued.

        Its task may need one more iteration of the event loop then.
        """
        return None if self._active is None or self._active.is_done else self._active

    def _on_task_done(self, response: Response, task: "asyncio.Task[None]") -> None:
        if self._active is not response:
            # Another response was started in the same iteration of the event loop.
            return
        self._active = None
        self.idle.set()
        self._transcriber.resume()
        if not task.cancelled():
            self._on_idle()

    async def _generate(self, response_input: ResponseInput) -> AsyncGenerator[Event, None]:
        """Yield the backend's events; halve a context that does not fit, if that is allowed."""
        items, has_started = response_input.items, False
        while True:
            try:
                async with aclosing(
                    self._backend.respond(self._build_request(response_input, items))
                ) as events:
                    async for event in events:
                        has_started = True
                        yield event
                return
            except ContextExceeded:
                if has_started or not response_input.drops_oldest or len(items) < 2:
                    raise
                items = drop_oldest_half(items)

    def _build_request(self, response_input: ResponseInput, items: Sequence[Item]) -> ChatRequest:
        answers, max_tokens = response_input.config.answers, self._backend.max_tokens
        is_spoken = answers.modality == "audio"
        messages = build_messages(answers.instructions, items)
        return ChatRequest(
            id=response_input.config.id,
            messages=messages,
            sampling=SamplingParams(max_tokens=min(answers.max_tokens or max_tokens, max_tokens)),
            voice=self._choose_voice(answers) if is_spoken else None,
            reading=build_answer_reading(messages, self._backend),
            tools=answers.callable_tools,
            tool_choice=answers.model_tool_choice,
            tenant=self._tenant,
            priority="realtime",
        )

    def _choose_voice(self, answers: AnswerConfig) -> Voice:
        return choose_voice(answers.voice, None, self._backend, "voice", answers.owner)
