"""Who answers: at most one response at a time, and what must wait for it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import choose_voice
from sglang_omni.entrypoints.realtime.context import to_messages, without_oldest
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import Item
from sglang_omni.entrypoints.realtime.response import CancelReason, Response, ResponseConfig
from sglang_omni.entrypoints.realtime.session_config import AnswerConfig
from sglang_omni.entrypoints.realtime.transcriber import Transcriber
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.pipeline.request import ChatRequest, Event, SamplingParams, Voice
from sglang_omni.protocol.errors import ContextExceeded, InvalidRequest


class ResponseActive(InvalidRequest):
    """There is a response under way."""

    code = "conversation_already_has_active_response"


class NoResponse(InvalidRequest):
    """There is no response to cancel."""

    code = "response_cancel_not_active"


@dataclass(frozen=True)
class ResponseInput:
    """What a response answers: a plan, the items that are its context, and whether the oldest
    may be left out where not all fit."""

    plan: ResponseConfig
    items: Sequence[Item]
    drops_oldest: bool


class ResponseController:
    """Owns the active response. `on_over` is called whenever one has ended and none follows."""

    def __init__(
        self,
        backend: Backend,
        outbox: EventSender,
        transcriber: Transcriber,
        tenant: str | None,
        on_over: Callable[[], None],
        observer: TraceRecorder,
    ) -> None:
        self._backend, self._outbox, self._transcriber = backend, outbox, transcriber
        self._tenant, self._on_over, self._observer = tenant, on_over, observer
        self._active: Response | None = None
        self.idle = asyncio.Event()
        """Set while no response is under way."""
        self.idle.set()

    @property
    def is_busy(self) -> bool:
        """Whether a response is under way."""
        return self._under_way() is not None

    def start(self, question: ResponseInput) -> None:
        """Begin a response. Raises `ResponseActive`."""
        if (active := self._under_way()) is not None:
            raise ResponseActive(
                f"the response {active.plan.id} is under way; cancel it or wait for its end"
            )
        rate = self._backend.sample_rate
        response = Response(question.plan, self._outbox, rate, self._observer)
        self._transcriber.hold()
        self._active = response
        self.idle.clear()
        task = response.start(self._answer(question))
        task.add_done_callback(partial(self._over, response))

    async def cancel(self, reason: CancelReason, response_id: str | None = None) -> None:
        """Stop the response under way; returns when the backend has let go of it.

        Raises `NoResponse` when there is none, or not the one named.
        """
        active = self._under_way()
        if active is None or response_id not in (None, active.plan.id):
            raise NoResponse("there is no such response under way", param="response_id")
        await active.cancel(reason)

    async def close(self) -> None:
        """Stop without another event."""
        if self._active is not None:
            await self._active.abandon()

    def _under_way(self) -> Response | None:
        """The active response, unless all that its client will see of it is queued: only the turn
        of the event loop is left in which its task ends."""
        return None if self._active is None or self._active.is_over else self._active

    def _over(self, response: Response, task: "asyncio.Task[None]") -> None:
        if self._active is not response:
            # Another has begun in the same turn.
            return
        self._active = None
        self.idle.set()
        self._transcriber.go()
        if not task.cancelled():
            self._on_over()

    async def _answer(self, question: ResponseInput) -> AsyncGenerator[Event, None]:
        """The backend's events; a context that does not fit is halved until it does, if it may."""
        items, begun = question.items, False
        while True:
            try:
                async with aclosing(
                    self._backend.respond(self._request(question, items))
                ) as answer:
                    async for event in answer:
                        begun = True
                        yield event
                return
            except ContextExceeded:
                if begun or not question.drops_oldest or len(items) < 2:
                    raise
                items = without_oldest(items)

    def _request(self, question: ResponseInput, items: Sequence[Item]) -> ChatRequest:
        answers, most = question.plan.answers, self._backend.max_tokens
        spoken = answers.modality == "audio"
        return ChatRequest(
            id=question.plan.id,
            messages=to_messages(answers.instructions, items),
            sampling=SamplingParams(max_tokens=min(answers.max_tokens or most, most)),
            voice=self._voice(answers) if spoken else None,
            tools=answers.callable_tools,
            tool_choice=answers.calling,
            tenant=self._tenant,
            priority="realtime",
        )

    def _voice(self, answers: AnswerConfig) -> Voice:
        return choose_voice(answers.voice, None, self._backend, "voice", answers.owner)
