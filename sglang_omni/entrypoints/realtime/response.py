"""Runs one response: converts the backend's events to the client's, in the required order."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from sglang_omni.entrypoints.http.errors import to_public_error
from sglang_omni.entrypoints.notices import build_notice
from sglang_omni.entrypoints.realtime.audio_codec import OutputEncoder
from sglang_omni.entrypoints.realtime.conversation import Conversation
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import JSON, Status, item_to_json, make_id
from sglang_omni.entrypoints.realtime.output_item import AudioItem, FunctionCallItem, TextItem
from sglang_omni.entrypoints.realtime.session_config import AnswerConfig
from sglang_omni.entrypoints.realtime.usage import rate_limits_to_json, usage_to_json
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    TextDelta,
    ToolCalled,
    TranscriptDelta,
    UnspokenText,
    Usage,
)
from sglang_omni.protocol.errors import OmniError
from sglang_omni.protocol.tools import ToolCall, ToolCallDelta, ToolCallStart

# Route of a response in the request traces; the id there is the id of the response.
ROUTE = "WS /v1/realtime response"
CancelReason = Literal["turn_detected", "client_cancelled"]


@dataclass(frozen=True)
class ResponseConfig:
    """Settings of one response. `conversation` is None for a response outside of it."""

    answers: AnswerConfig
    conversation: Conversation | None
    conversation_id: str
    metadata: dict[str, str] | None = None
    id: str = field(default_factory=lambda: make_id("resp"))


@dataclass(frozen=True)
class Outcome:
    """How a response ended, in the terms of the protocol."""

    status: Literal["completed", "cancelled", "failed", "incomplete"]
    reason: str | None = None
    error: OmniError | None = None

    @property
    def item_status(self) -> Status:
        """Return the status of the response's item."""
        return "completed" if self.status == "completed" else "incomplete"

    @property
    def http_status(self) -> int | None:
        """Return the equivalent HTTP status; None if the client cancelled the response."""
        if self.error is not None:
            return self.error.status
        return None if self.status == "cancelled" else 200

    def to_json(self) -> JSON | None:
        """Return the `status_details` of the response."""
        if self.status == "completed":
            return None
        details: JSON = {"type": self.status}
        if self.reason is not None:
            details["reason"] = self.reason
        if self.error is not None:
            error = {"type": self.error.type, "code": self.error.code}
            details["error"] = {**error, "message": self.error.message}
        return details


COMPLETED = Outcome("completed")
TRUNCATED = Outcome("incomplete", "max_output_tokens")
# Specific to this server: the model's function call was malformed.
INVALID_CALL = Outcome("incomplete", "invalid_tool_call")


def to_outcome(finished: Finished) -> Outcome:
    """Return the outcome of a response that was not cancelled."""
    if finished.reason == "length":
        return TRUNCATED
    return INVALID_CALL if finished.invalid_calls else COMPLETED


class Response:
    """A response, which runs once.

    `cancel` may be called at any time. No part of the answer is queued after it.
    """

    def __init__(
        self,
        config: ResponseConfig,
        sender: EventSender,
        source_rate: int,
        trace_recorder: TraceRecorder,
    ) -> None:
        """Create a response; `source_rate` is the sample rate of the backend's speech in Hz."""
        self.config = config
        self._trace_recorder = trace_recorder
        self._sender = sender
        self._source_rate = source_rate
        self._message: AudioItem | TextItem | None = None
        self._call: FunctionCallItem | None = None
        self._output: list[AudioItem | TextItem | FunctionCallItem] = []
        self._usage: Usage | None = None
        self._cancelled: CancelReason | None = None
        self._outcome = COMPLETED
        self._has_started = False
        self._is_done = False
        self._http_status: int | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_done(self) -> bool:
        """Return whether the last event is queued."""
        return self._is_done

    def start(self, events: AsyncGenerator[Event, None]) -> "asyncio.Task[None]":
        """Start a task that sends the response for the backend's `events`, and closes them."""
        self._sender.put("response.created", response=self._to_json("in_progress", None))
        self._task = asyncio.create_task(self._run(events))
        return self._task

    async def cancel(self, reason: CancelReason) -> None:
        """Stop the backend. Return when it has stopped and `response.done` is queued."""
        if self._task is None or self._is_done:
            return
        self._cancelled = reason
        self._sender.discard_audio()
        if self._has_started:
            self._task.cancel()
        await asyncio.wait((self._task,))

    async def abort(self) -> None:
        """Stop the backend without another event, for a connection that is closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self, events: AsyncGenerator[Event, None]) -> None:
        with self._trace_recorder.nested(self.config.id, ROUTE) as trace:
            await self._consume(events)
            trace.status = self._http_status

    async def _consume(self, events: AsyncGenerator[Event, None]) -> None:
        self._has_started = True
        try:
            if self._cancelled is not None:
                # `cancel` does not cancel a task before its first step, because such a task would
                # not reach the code that sends `response.done`.
                raise asyncio.CancelledError
            async with aclosing(require_finished(events)) as answer:
                async for event in answer:
                    await self._sender.wait_for_room()
                    await self._handle_event(event)
            outcome = self._outcome
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
            outcome = Outcome("cancelled", self._cancelled)
        except Exception as error:
            await self._flush_audio()
            outcome = Outcome("failed", error=to_public_error(error))
        # Must come last: a client that reads `response.done` may create a response at once.
        self._finish(outcome)

    async def _handle_event(self, event: Event) -> None:
        is_spoken = self.config.answers.modality == "audio"
        match event:
            case TextDelta(text) if not is_spoken:
                self._get_text_item().add_text(text)
            case TranscriptDelta(words) if is_spoken:
                self._get_audio_item().add_transcript(words)
            case UnspokenText() if is_spoken:
                self._get_audio_item().add_notice(build_notice(event))
            case AudioDelta(pcm) if is_spoken:
                await self._get_audio_item().add_audio(pcm)
            case ToolCallStart(name):
                self._open_call(name)
            case ToolCallDelta(text) if self._call is not None:
                self._call.add_arguments(text)
            case ToolCalled(call):
                self._close_call(call)
            case Finished(usage=usage):
                self._usage, self._outcome = usage, to_outcome(event)
                await self._flush_audio()

    async def _flush_audio(self) -> None:
        if isinstance(self._message, AudioItem):
            await self._message.flush()

    def _get_text_item(self) -> TextItem:
        if not isinstance(self._message, TextItem):
            self._message = TextItem(*self._next_item_fields())
            self._open_message(self._message)
        return self._message

    def _get_audio_item(self) -> AudioItem:
        if not isinstance(self._message, AudioItem):
            answers = self.config.answers
            encoder = OutputEncoder(self._source_rate, answers.format, answers.speed)
            self._message = AudioItem(*self._next_item_fields(), encoder)
            self._open_message(self._message)
        return self._message

    def _open_call(self, name: str) -> FunctionCallItem:
        self._call = FunctionCallItem(*self._next_item_fields(), name)
        self._output.append(self._call)
        self._call.open()
        return self._call

    def _close_call(self, call: ToolCall) -> None:
        """End the call that has begun, or send one that is known from its end only."""
        item = self._call
        if item is None:
            item = self._open_call(call.name)
            item.add_arguments(call.arguments)
        item.close("completed")
        self._call = None

    def _next_item_fields(self) -> tuple[EventSender, Conversation | None, str, int]:
        """Return the first four arguments of the next item's constructor."""
        return self._sender, self.config.conversation, self.config.id, len(self._output)

    def _open_message(self, message: AudioItem | TextItem) -> None:
        self._output.append(message)
        message.open()

    def _finish(self, outcome: Outcome) -> None:
        self._is_done = True
        self._http_status = outcome.http_status
        match self._message:
            case AudioItem() as audio_item:
                is_truncated = outcome.status == "cancelled"
                played_ms = self._get_played_ms(audio_item.item.id)
                audio_item.close(outcome.item_status, is_truncated, played_ms)
            case TextItem() as text_item:
                text_item.close(outcome.item_status)
        if self._call is not None:
            self._call.close("incomplete")
        self._sender.put("response.done", response=self._to_json(outcome.status, outcome))
        self._sender.put("rate_limits.updated", rate_limits=rate_limits_to_json())

    def _get_played_ms(self, item_id: str) -> float | None:
        """Return the audio that was played before the user interrupted, None without interruption.

        A client that cancels the response may still play the audio that it has.
        """
        is_interrupted = self._cancelled == "turn_detected"
        return self._sender.played_ms(item_id) if is_interrupted else None

    def _to_json(self, status: str, outcome: Outcome | None) -> JSON:
        answers = self.config.answers
        in_conversation = self.config.conversation is not None
        return {
            "id": self.config.id,
            "object": "realtime.response",
            "status": status,
            "status_details": outcome.to_json() if outcome else None,
            "output": [item_to_json(output.item) for output in self._output],
            "conversation_id": self.config.conversation_id if in_conversation else None,
            "output_modalities": [answers.modality],
            "max_output_tokens": answers.max_tokens or "inf",
            "audio": {"output": {"format": answers.format.to_json(), "voice": answers.voice}},
            "metadata": self.config.metadata,
            "usage": usage_to_json(self._usage, answers) if self._usage else None,
        }
