"""Controls the turns of a session: user turns, responses and interruptions."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

import numpy as np

from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.realtime.conversation import Conversation
from sglang_omni.entrypoints.realtime.error_event import put_error
from sglang_omni.entrypoints.realtime.event_sender import EventSender, MonotonicClock
from sglang_omni.entrypoints.realtime.input_audio_buffer import InputAudioBuffer
from sglang_omni.entrypoints.realtime.item_conversion import to_audio_content
from sglang_omni.entrypoints.realtime.items import (
    Item,
    MessageItem,
    SpeechContent,
    item_to_json,
    make_id,
)
from sglang_omni.entrypoints.realtime.response import ResponseConfig
from sglang_omni.entrypoints.realtime.response_controller import (
    NoActiveResponse,
    ResponseController,
    ResponseInput,
)
from sglang_omni.entrypoints.realtime.session_config import SessionConfig, build_turn_rules
from sglang_omni.entrypoints.realtime.transcriber import Transcriber
from sglang_omni.entrypoints.realtime.turn_detection import SpeechStarted, SpeechStopped, TurnEvent
from sglang_omni.media.vad import Detector
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import InvalidRequest, OmniError


class VoiceUpdateRejected(InvalidRequest):
    """The voice cannot change once the session has sent audio."""

    code = "cannot_update_voice"


class TurnController:
    """Holds the input buffer, the conversation, the transcriber and the response controller."""

    def __init__(
        self,
        config: SessionConfig,
        backend: Backend,
        options: RealtimeOptions,
        sender: EventSender,
        detector: Detector,
        clock: MonotonicClock,
        tenant: str | None,
        trace_recorder: TraceRecorder,
    ) -> None:
        self._sender, self._clock = sender, clock
        self._max_turn_ms = int(options.turn_seconds * 1000)
        self.config = config
        self.conversation = Conversation(options.conversation_bytes)
        self.conversation_id = make_id("conv")
        self._input_buffer = InputAudioBuffer(config.input_format, detector, self._max_turn_ms)
        self._transcriber = Transcriber(backend, self.conversation, sender, tenant)
        self._responses = ResponseController(
            backend, sender, self._transcriber, tenant, self._on_response_done, trace_recorder
        )
        # Events about a turn refer to its item before the item exists.
        self._turn_item_id = make_id("item")
        self._is_response_pending = False
        self._idle_timer: asyncio.Task[None] | None = None
        self._transcription: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to listen."""
        self._transcription = asyncio.create_task(self._transcriber.run())
        self.configure(self.config)

    async def close(self) -> None:
        """Stop every task and wait for it."""
        tasks = [task for task in (self._idle_timer, self._transcription) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._responses.close()

    async def wait_until_idle(self) -> None:
        """Return once no response is active."""
        await self._responses.idle.wait()

    def configure(self, config: SessionConfig) -> None:
        """Apply new settings. Raises `VoiceUpdateRejected`."""
        self._check_voice(config.answers.voice, "session.audio.output.voice")
        detection = config.turn_detection
        if detection != self.config.turn_detection:
            self._cancel_idle_timer()
        rules = build_turn_rules(detection, self._max_turn_ms) if detection else None
        self._input_buffer.configure(config.input_format, rules)
        self.config = config

    async def append_audio(self, data: bytes) -> None:
        """Append user audio and handle the turn events in it. Raises `InvalidRequest`."""
        async with aclosing(self._input_buffer.append(data)) as events:
            async for event in events:
                await self._handle_turn_event(event)

    def commit(self) -> None:
        """Commit the input buffer as a turn. Raises `BufferEmpty`."""
        self._commit(self._input_buffer.commit())

    def clear(self) -> None:
        """Discard the audio in the input buffer."""
        self._input_buffer.clear()
        self._sender.put("input_audio_buffer.cleared")

    def add(self, item: Item, after_id: str | None = None) -> None:
        """Insert an item into the conversation. Raises `ItemError`."""
        previous_id = self.conversation.add(item, after_id)
        fields = {"previous_item_id": previous_id, "item": item_to_json(item)}
        self._sender.put("conversation.item.added", **fields)
        self._sender.put("conversation.item.done", **fields)
        if self.config.transcription is not None and isinstance(item, MessageItem):
            self._transcriber.add(item, self.config.transcription)

    def truncate(self, item_id: str, speech: SpeechContent, played_ms: float) -> None:
        """Truncate a spoken answer to the part that was played."""
        item = self.conversation.find(item_id, "truncate")
        assert isinstance(item, MessageItem)
        self.conversation.replace(replace(item, content=(replace(speech, played_ms=played_ms),)))

    def create_response(self, config: ResponseConfig, items: Sequence[Item]) -> None:
        """Start a response. Raises `ResponseActive`, `VoiceUpdateRejected`."""
        self._check_voice(config.answers.voice, "response.audio.output.voice")
        self._responses.start(ResponseInput(config, items, self.config.drops_oldest))
        self._cancel_idle_timer()
        self._is_response_pending = False

    async def cancel(self, response_id: str | None) -> None:
        """Cancel the active response for the client. Raises `NoActiveResponse`."""
        await self._responses.cancel("client_cancelled", response_id)

    def _check_voice(self, voice: str, param: str) -> None:
        if voice != self.config.answers.voice and self._sender.last_audio_at is not None:
            raise VoiceUpdateRejected(
                f"{param}: the voice cannot change once the session has sent audio", param=param
            )

    async def _handle_turn_event(self, event: TurnEvent) -> None:
        detection, turn = self.config.turn_detection, {"item_id": self._turn_item_id}
        match event:
            case SpeechStarted(start_ms):
                event_type = "input_audio_buffer.speech_started"
                self._sender.put(event_type, audio_start_ms=start_ms, **turn)
                self._cancel_idle_timer()
                if detection is not None and detection.interrupt_response:
                    await self._interrupt()
            case SpeechStopped(start_ms, end_ms):
                event_type = "input_audio_buffer.speech_stopped"
                self._sender.put(event_type, audio_end_ms=end_ms, **turn)
                self._commit(self._input_buffer.take(start_ms, end_ms))
                if self.config.answers_turns:
                    self._answer_turn()

    def _commit(self, samples: np.ndarray) -> None:
        item = MessageItem(self._turn_item_id, "user", (to_audio_content(samples),))
        self._turn_item_id = make_id("item")
        event_type, previous_id = "input_audio_buffer.committed", self.conversation.last_id
        self._sender.put(event_type, item_id=item.id, previous_item_id=previous_id)
        self.add(item)

    def _answer_turn(self) -> None:
        """Answer the turn, after the active response if that must not be interrupted."""
        if self._responses.has_active_response:
            self._is_response_pending = True
            return
        config = ResponseConfig(self.config.answers, self.conversation, self.conversation_id)
        try:
            self.create_response(config, list(self.conversation))
        except OmniError as error:
            put_error(self._sender, error)

    def _on_response_done(self) -> None:
        if self._is_response_pending:
            self._answer_turn()
            return
        timeout_ms = getattr(self.config.turn_detection, "idle_timeout_ms", None)
        if timeout_ms is not None and not self._input_buffer.is_in_turn:
            self._idle_timer = asyncio.create_task(self._run_idle_timer(timeout_ms / 1000))

    async def _interrupt(self) -> None:
        """Stop the response because the user speaks, and keep the part that was played."""
        unplayed_ids = self._sender.stop_playback()
        with suppress(NoActiveResponse):
            await self._responses.cancel("turn_detected")
        for item_id in unplayed_ids:
            self._truncate_to_played(item_id)

    def _truncate_to_played(self, item_id: str) -> None:
        """Truncate an answer that was complete but not fully played."""
        speech = self.conversation.find_speech(item_id)
        played_ms = self._sender.played_ms(item_id)
        if speech is None or speech.played_ms is not None or played_ms >= speech.duration_ms:
            return
        sent_ms = min(speech.duration_ms, self._sender.sent_ms(item_id))
        self.truncate(item_id, replace(speech, duration_ms=sent_ms), played_ms)

    async def _run_idle_timer(self, timeout_s: float) -> None:
        """Have the model speak if the user stays silent after the end of the playback."""
        playback_ends_at = self._sender.playback_ends_at()
        await self._clock.sleep_until(playback_ends_at)
        start_ms = self._input_buffer.received_ms
        await self._clock.sleep_until(playback_ends_at + timeout_s)
        self._idle_timer = None
        end_ms = self._input_buffer.received_ms
        self._sender.put(
            "input_audio_buffer.timeout_triggered",
            audio_start_ms=start_ms,
            audio_end_ms=end_ms,
            item_id=self._turn_item_id,
        )
        self._commit(self._input_buffer.take(start_ms, end_ms))
        self._answer_turn()

    def _cancel_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
