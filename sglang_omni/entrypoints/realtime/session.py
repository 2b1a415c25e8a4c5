"""One realtime session: client events in, server events out.

`handle` takes one event after the other. What else goes on (a response, a transcription, the timer
of `idle_timeout_ms`) runs beside it on the same event loop.
"""

import asyncio

from sglang_omni.config.options import RealtimeOptions
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import to_public_error
from sglang_omni.entrypoints.http.request_body.reader import get_offload_size
from sglang_omni.entrypoints.realtime import client_events as client
from sglang_omni.entrypoints.realtime.audio_codec import from_base64
from sglang_omni.entrypoints.realtime.conversation import ItemError
from sglang_omni.entrypoints.realtime.error_event import put_error
from sglang_omni.entrypoints.realtime.event_sender import EventSender, MonotonicClock
from sglang_omni.entrypoints.realtime.item_conversion import to_item, to_items
from sglang_omni.entrypoints.realtime.items import JSON, Item, item_json, new_id
from sglang_omni.entrypoints.realtime.parsing import event_id_of, read_object, to_event
from sglang_omni.entrypoints.realtime.protocol_version import GA, ProtocolVersion
from sglang_omni.entrypoints.realtime.response import ResponseConfig
from sglang_omni.entrypoints.realtime.session_config import (
    AnswerConfig,
    SessionConfig,
    for_response,
    updated,
)
from sglang_omni.entrypoints.realtime.session_schema import ResponseBody
from sglang_omni.entrypoints.realtime.text_limit import answering_texts, item_texts, response_texts
from sglang_omni.entrypoints.realtime.turn_controller import TurnController
from sglang_omni.entrypoints.text_limit import check_text_length
from sglang_omni.entrypoints.unicode import check_unicode
from sglang_omni.entrypoints.work_threads import run_off_loop
from sglang_omni.media.vad import Detector
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import InvalidRequest


class RealtimeSession:
    """Translates what one client asks into what happens on its floor."""

    def __init__(
        self,
        backend: Backend,
        options: RealtimeOptions,
        outbox: EventSender,
        detector: Detector,
        clock: MonotonicClock,
        dialect: ProtocolVersion = GA,
        tenant: str | None = None,
        owner: str | None = None,
        observer: TraceRecorder | None = None,
    ) -> None:
        """`owner` is whose stored voices may be named, `observer` sees each response. Raises
        `EngineUnavailable` while the backend does not know its voices."""
        self._backend, self._outbox, self._dialect = backend, outbox, dialect
        config = SessionConfig(backend.model, AnswerConfig(backend.default_voice, owner=owner))
        self._floor = TurnController(
            config, backend, options, outbox, detector, clock, tenant, observer or TraceRecorder()
        )
        self.id = new_id("sess")

    def start(self) -> None:
        """Greet the client and begin to listen."""
        self._floor.start()
        self._outbox.put("session.created", session=self._json())
        conversation = {"id": self._floor.conversation_id, "object": "realtime.conversation"}
        self._outbox.put("conversation.created", conversation=conversation)

    async def close(self) -> None:
        """Stop everything; nothing of the session is at work when this returns."""
        await self._floor.close()

    async def until_idle(self) -> None:
        """Return once no response is under way."""
        await self._floor.until_idle()

    async def handle(self, frame: str) -> None:
        """Take one frame. Whatever is wrong with it becomes an `error` event."""
        value: JSON = {}
        try:
            size = get_offload_size(frame)
            value = await run_off_loop(size, read_object, frame)
            if not size:
                check_unicode(value)
            event = await run_off_loop(size, to_event, self._dialect.from_client(value))
            await self._take(event)
        except Exception as error:
            put_error(self._outbox, to_public_error(error), event_id_of(value))

    async def _take(self, event: client.Event) -> None:
        floor, conversation = self._floor, self._floor.conversation
        match event:
            case client.InputAudioBufferAppend(audio=audio):
                await floor.hear(await run_off_loop(get_offload_size(audio), from_base64, audio))
            case client.InputAudioBufferCommit():
                floor.commit()
            case client.InputAudioBufferClear():
                floor.clear()
            case client.SessionUpdate(session=body):
                check_text_length(answering_texts(body, "session"), self._backend.context_length)
                floor.configure(updated(floor.config, body, self._backend))
                self._outbox.put("session.updated", session=self._json())
            case client.ResponseCreate(response=body):
                await self._respond(body)
            case client.ResponseCancel(response_id=response_id):
                await floor.cancel(response_id)
            case client.ItemCreate():
                await self._create(event)
            case client.ItemDelete(item_id=item_id):
                conversation.delete(item_id)
                self._outbox.put("conversation.item.deleted", item_id=item_id)
            case client.ItemRetrieve(item_id=item_id):
                item = item_json(conversation.find(item_id, "retrieve"), with_audio=True)
                self._outbox.put("conversation.item.retrieved", item=item)
            case client.ItemTruncate():
                self._truncate(event)
            case client.OutputAudioBufferClear():
                raise InvalidRequest(
                    "output_audio_buffer.clear: is for WebRTC and SIP; over a WebSocket the client "
                    "plays the sound: stop it, and send conversation.item.truncate",
                    param="type",
                )

    def _json(self) -> JSON:
        return {"id": self.id, **self._floor.config.json()}

    async def _create(self, event: client.ItemCreate) -> None:
        # A recording of minutes takes a while to decode.
        check_text_length(item_texts(event.item, "item"), self._backend.context_length)
        wire = self._floor.config.input_format
        item = await asyncio.to_thread(to_item, event.item, wire, "item")
        if not self._floor.conversation.has_room(item):
            full = "item: the conversation is full; delete items, or begin a new session"
            raise ItemError(full, "conversation_full", "item")
        self._floor.add(item, event.previous_item_id)

    def _truncate(self, event: client.ItemTruncate) -> None:
        conversation, name = self._floor.conversation, event.item_id
        conversation.find(name, "truncate")
        speech = conversation.speech_of(name)
        if speech is None or event.content_index != 0:
            message = f"content_index: {name} has no speech there"
            raise ItemError(message, "item_truncate_invalid_content", "content_index")
        if event.audio_end_ms > speech.duration_ms:
            message = f"audio_end_ms: the audio has {speech.duration_ms:.0f} ms"
            raise ItemError(message, "item_truncate_invalid_audio_end", "audio_end_ms")
        self._floor.cut(name, speech, float(event.audio_end_ms))
        fields = event.model_dump(include={"item_id", "content_index", "audio_end_ms"})
        self._outbox.put("conversation.item.truncated", **fields)

    async def _respond(self, body: ResponseBody) -> None:
        floor = self._floor
        check_text_length(response_texts(body), self._backend.context_length)
        answers = for_response(floor.config, body, self._backend)
        conversation = floor.conversation if body.conversation == "auto" else None
        plan = ResponseConfig(answers, conversation, floor.conversation_id, body.metadata)
        floor.ask(plan, await self._context(body))

    async def _context(self, body: ResponseBody) -> list[Item]:
        """What a response is to be given to: the conversation, or what the client names."""
        conversation = self._floor.conversation
        if body.input is None:
            return list(conversation)
        wire = self._floor.config.input_format
        known = {item.id: item for item in conversation}
        return await asyncio.to_thread(to_items, body.input, wire, known)
