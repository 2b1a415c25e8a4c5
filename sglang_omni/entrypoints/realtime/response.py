"""One response: from the backend's events to the client's, in the order that clients rely on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

from sglang_omni.admission.rate_limit.limiter import current_rate_limits
from sglang_omni.entrypoints.http.errors import public_error
from sglang_omni.entrypoints.http.responses.cancellable import until_finished
from sglang_omni.entrypoints.realtime.audio_codec import OutputEncoder
from sglang_omni.entrypoints.realtime.conversation import Conversation
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import JSON, Status, item_json, new_id
from sglang_omni.entrypoints.realtime.output_item import AudioItem, FunctionCallItem, TextItem
from sglang_omni.entrypoints.realtime.session_config import AnswerConfig
from sglang_omni.models.ming.prompt.tools import ToolCall
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    TextDelta,
    ToolCalled,
    TranscriptDelta,
    Usage,
)
from sglang_omni.protocol.errors import OmniError

# What a response is called among the traces of requests, where its id is that of the response.
ROUTE = "WS /v1/realtime response"
CancelReason = Literal["turn_detected", "client_cancelled"]


@dataclass(frozen=True)
class ResponseConfig:
    """What a response is to be. `conversation` is None for one that stays out of it."""

    answers: AnswerConfig
    conversation: Conversation | None
    conversation_id: str
    metadata: dict[str, str] | None = None
    id: str = field(default_factory=lambda: new_id("resp"))


@dataclass(frozen=True)
class Outcome:
    """How a response ended, in the words of the protocol."""

    status: Literal["completed", "cancelled", "failed", "incomplete"]
    reason: str | None = None
    error: OmniError | None = None

    @property
    def item_status(self) -> Status:
        """What that means for its item."""
        return "completed" if self.status == "completed" else "incomplete"

    @property
    def http_status(self) -> int | None:
        """What that would be over HTTP; None where the client did not wait for the end."""
        if self.error is not None:
            return self.error.status
        return None if self.status == "cancelled" else 200

    def json(self) -> JSON | None:
        """The `status_details`."""
        if self.status == "completed":
            return None
        details: JSON = {"type": self.status}
        if self.reason is not None:
            details["reason"] = self.reason
        if self.error is not None:
            names = {"type": self.error.type, "code": self.error.code}
            details["error"] = {**names, "message": self.error.message}
        return details


COMPLETED = Outcome("completed")
CUT = Outcome("incomplete", "max_output_tokens")
# Of this server: the model called a function, and not in the form of a call.
NO_CALL = Outcome("incomplete", "invalid_tool_call")


def outcome_of(finished: Finished) -> Outcome:
    """How an answer ended that nobody stopped."""
    if finished.reason == "length":
        return CUT
    return NO_CALL if finished.invalid_calls else COMPLETED


class Response:
    """Runs once. `cancel` may be called at any time, and takes effect before it returns control
    to the backend: nothing of the answer is queued afterwards."""

    def __init__(
        self, plan: ResponseConfig, outbox: EventSender, source_rate: int, observer: TraceRecorder
    ) -> None:
        """`source_rate`: of the backend's speech, in Hz."""
        self.plan = plan
        self._observer = observer
        self._outbox = outbox
        self._source_rate = source_rate
        self._message: AudioItem | TextItem | None = None
        self._output: list[AudioItem | TextItem | FunctionCallItem] = []
        self._usage: Usage | None = None
        self._cancelled: CancelReason | None = None
        self._ended = COMPLETED
        self._has_begun = False
        self._is_over = False
        self._status: int | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether its last event is queued."""
        return self._is_over

    def start(self, events: AsyncGenerator[Event, None]) -> "asyncio.Task[None]":
        """Begin to answer with what `events` gives; closes it."""
        self._outbox.put("response.created", response=self._json("in_progress", None))
        self._task = asyncio.create_task(self._run(events))
        return self._task

    async def cancel(self, reason: CancelReason) -> None:
        """Stop the backend's work; returns when it has stopped and `response.done` is queued."""
        if self._task is None or self._is_over:
            return
        self._cancelled = reason
        self._outbox.discard_sound()
        if self._has_begun:
            self._task.cancel()
        await asyncio.wait((self._task,))

    async def abandon(self) -> None:
        """Stop without another event: nobody is there to read it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self, events: AsyncGenerator[Event, None]) -> None:
        with self._observer.nested(self.plan.id, ROUTE) as trace:
            await self._follow(events)
            trace.status = self._status

    async def _follow(self, events: AsyncGenerator[Event, None]) -> None:
        self._has_begun = True
        try:
            if self._cancelled is not None:
                # A task that is cancelled before its first step never says how it ended.
                raise asyncio.CancelledError
            async with aclosing(until_finished(events)) as answer:
                async for event in answer:
                    await self._outbox.room()
                    await self._take(event)
            outcome = self._ended
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
            outcome = Outcome("cancelled", self._cancelled)
        except Exception as error:
            await self._finish_sound()
            outcome = Outcome("failed", error=public_error(error))
        # Last of all: whoever reads `response.done` may ask for the next response at once.
        self._end(outcome)

    async def _take(self, event: Event) -> None:
        spoken = self.plan.answers.modality == "audio"
        match event:
            case TextDelta(text) if not spoken:
                self._written().write(text)
            case TranscriptDelta(words) if spoken:
                self._spoken().say(words)
            case AudioDelta(pcm) if spoken:
                await self._spoken().sound(pcm)
            case ToolCalled(call):
                self._call(call)
            case Finished(usage=usage):
                self._usage, self._ended = usage, outcome_of(event)
                await self._finish_sound()

    async def _finish_sound(self) -> None:
        if isinstance(self._message, AudioItem):
            await self._message.finish()

    def _written(self) -> TextItem:
        if not isinstance(self._message, TextItem):
            self._message = TextItem(*self._next())
            self._begin(self._message)
        return self._message

    def _spoken(self) -> AudioItem:
        if not isinstance(self._message, AudioItem):
            answers = self.plan.answers
            mouth = OutputEncoder(self._source_rate, answers.format, answers.speed)
            self._message = AudioItem(*self._next(), mouth)
            self._begin(self._message)
        return self._message

    def _call(self, call: ToolCall) -> None:
        called = FunctionCallItem(*self._next(), call)
        self._output.append(called)
        called.send()

    def _next(self) -> tuple[EventSender, Conversation | None, str, int]:
        """What the next item of this response belongs to."""
        return self._outbox, self.plan.conversation, self.plan.id, len(self._output)

    def _begin(self, message: AudioItem | TextItem) -> None:
        self._output.append(message)
        message.open()

    def _end(self, outcome: Outcome) -> None:
        self._is_over = True
        self._status = outcome.http_status
        match self._message:
            case AudioItem() as spoken:
                is_cut, heard_ms = outcome.status == "cancelled", self._heard_ms(spoken.item.id)
                spoken.close(outcome.item_status, is_cut, heard_ms)
            case TextItem() as written:
                written.close(outcome.item_status)
        self._outbox.put("response.done", response=self._json(outcome.status, outcome))
        self._outbox.put("rate_limits.updated", rate_limits=rate_limits_json())

    def _heard_ms(self, item_id: str) -> float | None:
        """Who spoke over the answer heard no more of it; a client that merely stopped the answer
        may go on to play what it has."""
        interrupted = self._cancelled == "turn_detected"
        return self._outbox.heard_ms(item_id) if interrupted else None

    def _json(self, status: str, outcome: Outcome | None) -> JSON:
        answers = self.plan.answers
        in_conversation = self.plan.conversation is not None
        return {
            "id": self.plan.id,
            "object": "realtime.response",
            "status": status,
            "status_details": outcome.json() if outcome else None,
            "output": [item_json(output.item) for output in self._output],
            "conversation_id": self.plan.conversation_id if in_conversation else None,
            "output_modalities": [answers.modality],
            "max_output_tokens": answers.max_tokens or "inf",
            "audio": {"output": {"format": answers.format.json(), "voice": answers.voice}},
            "metadata": self.plan.metadata,
            "usage": usage_json(self._usage, answers) if self._usage else None,
        }


def rate_limits_json() -> list[dict[str, Any]]:
    """What is left to the key of this session, none without limits."""
    return [
        {
            "name": name,
            "limit": status.limit,
            "remaining": status.remaining,
            "reset_seconds": round(status.reset_s, 3),
        }
        for name, status in current_rate_limits().items()
    ]


def usage_json(usage: Usage, answers: AnswerConfig) -> dict[str, Any]:
    """Token counts; audio tokens out are talker patches of 320 ms."""
    written, spoken = usage.completion_tokens, usage.audio_tokens
    output = written + spoken
    return {
        "total_tokens": usage.prompt_tokens + output,
        "input_tokens": usage.prompt_tokens,
        "output_tokens": output,
        "input_token_details": {"cached_tokens": usage.cached_tokens},
        "output_token_details": {"text_tokens": written, "audio_tokens": spoken},
    }
