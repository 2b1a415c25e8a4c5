"""Whose turn it is: the user speaks, is answered, and speaks over the answer."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

import numpy as np

from sglang_omni.config.options import RealtimeOptions
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.realtime.conversation import Conversation
from sglang_omni.entrypoints.realtime.error_event import put_error
from sglang_omni.entrypoints.realtime.event_sender import EventSender, MonotonicClock
from sglang_omni.entrypoints.realtime.input_audio_buffer import InputAudioBuffer
from sglang_omni.entrypoints.realtime.item_conversion import to_clip
from sglang_omni.entrypoints.realtime.items import (
    Item,
    MessageItem,
    SpeechContent,
    item_json,
    new_id,
)
from sglang_omni.entrypoints.realtime.response import ResponseConfig
from sglang_omni.entrypoints.realtime.response_controller import (
    NoResponse,
    ResponseController,
    ResponseInput,
)
from sglang_omni.entrypoints.realtime.session_config import SessionConfig, turn_rules
from sglang_omni.entrypoints.realtime.transcriber import Transcriber
from sglang_omni.entrypoints.realtime.turn_detection import SpeechStarted, SpeechStopped, Turn
from sglang_omni.media.vad import Detector
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import InvalidRequest, OmniError


class VoiceFrozen(InvalidRequest):
    """The voice of a session that has spoken cannot change."""

    code = "cannot_update_voice"


class TurnController:
    """Owns what is heard, the conversation that grows from it, and who answers."""

    def __init__(
        self,
        config: SessionConfig,
        backend: Backend,
        options: RealtimeOptions,
        outbox: EventSender,
        detector: Detector,
        clock: MonotonicClock,
        tenant: str | None,
        observer: TraceRecorder,
    ) -> None:
        self._outbox, self._clock = outbox, clock
        self._most_ms = int(options.turn_seconds * 1000)
        self.config = config
        self.conversation = Conversation(options.conversation_bytes)
        self.conversation_id = new_id("conv")
        self._listener = InputAudioBuffer(config.input_format, detector, self._most_ms)
        self._transcriber = Transcriber(backend, self.conversation, outbox, tenant)
        self._responder = ResponseController(
            backend, outbox, self._transcriber, tenant, self._answered, observer
        )
        # A turn is announced by the name that its item will have.
        self._turn_item = new_id("item")
        self._answer_due = False
        self._idle: asyncio.Task[None] | None = None
        self._transcribing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to listen."""
        self._transcribing = asyncio.create_task(self._transcriber.run())
        self.configure(self.config)

    async def close(self) -> None:
        """Stop everything; nothing is at work when this returns."""
        tasks = [task for task in (self._idle, self._transcribing) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._responder.close()

    async def until_idle(self) -> None:
        """Return once no response is under way."""
        await self._responder.idle.wait()

    def configure(self, config: SessionConfig) -> None:
        """Go on under other settings. Raises `VoiceFrozen`."""
        self._check_voice(config.answers.voice, "session.audio.output.voice")
        if config.turns != self.config.turns:
            self._stop_idling()
        rules = turn_rules(config.turns, self._most_ms) if config.turns else None
        self._listener.configure(config.input_format, rules)
        self.config = config

    async def hear(self, data: bytes) -> None:
        """Take audio of the user's. Raises `InvalidRequest`."""
        async with aclosing(self._listener.hear(data)) as turns:
            async for turn in turns:
                await self._turn(turn)

    def commit(self) -> None:
        """What is in the buffer is a turn. Raises `BufferEmpty`."""
        self._commit(self._listener.commit())

    def clear(self) -> None:
        """Forget what is in the buffer."""
        self._listener.clear()
        self._outbox.put("input_audio_buffer.cleared")

    def add(self, item: Item, after: str | None = None) -> None:
        """Put an item into the conversation. Raises `ItemError`."""
        before = self.conversation.add(item, after)
        fields = {"previous_item_id": before, "item": item_json(item)}
        self._outbox.put("conversation.item.added", **fields)
        self._outbox.put("conversation.item.done", **fields)
        if self.config.transcription is not None and isinstance(item, MessageItem):
            self._transcriber.add(item, self.config.transcription)

    def cut(self, item_id: str, speech: SpeechContent, heard_ms: float) -> None:
        """Only so much of a spoken answer was heard."""
        item = self.conversation.find(item_id, "truncate")
        assert isinstance(item, MessageItem)
        self.conversation.replace(replace(item, content=(replace(speech, heard_ms=heard_ms),)))

    def ask(self, plan: ResponseConfig, items: Sequence[Item]) -> None:
        """Have the model answer. Raises `ResponseActive`, `VoiceFrozen`."""
        self._check_voice(plan.answers.voice, "response.audio.output.voice")
        self._responder.start(ResponseInput(plan, items, self.config.drops_oldest))
        self._stop_idling()
        self._answer_due = False

    async def cancel(self, response_id: str | None) -> None:
        """The client stops the answer. Raises `NoResponse`."""
        await self._responder.cancel("client_cancelled", response_id)

    def _check_voice(self, voice: str, place: str) -> None:
        if voice != self.config.answers.voice and self._outbox.last_sound_at is not None:
            raise VoiceFrozen(f"{place}: the session has spoken already", param=place)

    async def _turn(self, turn: Turn) -> None:
        turns, named = self.config.turns, {"item_id": self._turn_item}
        match turn:
            case SpeechStarted(start_ms):
                kind = "input_audio_buffer.speech_started"
                self._outbox.put(kind, audio_start_ms=start_ms, **named)
                self._stop_idling()
                if turns is not None and turns.interrupt_response:
                    await self._interrupt()
            case SpeechStopped(start_ms, end_ms):
                kind = "input_audio_buffer.speech_stopped"
                self._outbox.put(kind, audio_end_ms=end_ms, **named)
                self._commit(self._listener.take(start_ms, end_ms))
                if turns is not None and turns.create_response:
                    self._answer()

    def _commit(self, samples: np.ndarray) -> None:
        item = MessageItem(self._turn_item, "user", (to_clip(samples),))
        self._turn_item = new_id("item")
        before = self.conversation.last_id
        kind = "input_audio_buffer.committed"
        self._outbox.put(kind, item_id=item.id, previous_item_id=before)
        self.add(item)

    def _answer(self) -> None:
        """Answer the turn; where an answer is under way that must not be interrupted, after it."""
        if self._responder.is_busy:
            self._answer_due = True
            return
        plan = ResponseConfig(self.config.answers, self.conversation, self.conversation_id)
        try:
            self.ask(plan, list(self.conversation))
        except OmniError as error:
            put_error(self._outbox, error)

    def _answered(self) -> None:
        if self._answer_due:
            self._answer()
            return
        timeout_ms = getattr(self.config.turns, "idle_timeout_ms", None)
        if timeout_ms is not None and not self._listener.in_turn:
            self._idle = asyncio.create_task(self._wait_idle(timeout_ms / 1000))

    async def _interrupt(self) -> None:
        """The user speaks: stop the answer, and keep of it what was heard."""
        unheard = self._outbox.stop_playback()
        with suppress(NoResponse):
            await self._responder.cancel("turn_detected")
        for item_id in unheard:
            self._keep_heard(item_id)

    def _keep_heard(self, item_id: str) -> None:
        """Cut an answer that was complete, while its listener was in the middle of it."""
        speech = self.conversation.speech_of(item_id)
        heard_ms = self._outbox.heard_ms(item_id)
        if speech is None or speech.heard_ms is not None or heard_ms >= speech.duration_ms:
            return
        sent_ms = min(speech.duration_ms, self._outbox.sent_ms(item_id))
        self.cut(item_id, replace(speech, duration_ms=sent_ms), heard_ms)

    async def _wait_idle(self, timeout_s: float) -> None:
        """Nobody speaks: after a while the model does."""
        silent_from = self._outbox.plays_until()
        await self._clock.sleep_until(silent_from)
        start_ms = self._listener.now_ms
        await self._clock.sleep_until(silent_from + timeout_s)
        self._idle = None
        end_ms = self._listener.now_ms
        self._outbox.put(
            "input_audio_buffer.timeout_triggered",
            audio_start_ms=start_ms,
            audio_end_ms=end_ms,
            item_id=self._turn_item,
        )
        self._commit(self._listener.take(start_ms, end_ms))
        self._answer()

    def _stop_idling(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
