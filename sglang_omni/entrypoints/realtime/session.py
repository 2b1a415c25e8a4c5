"""Handles the client events of one Realtime session.

`handle` processes one event at a time. A response, a transcription and the timer of
`idle_timeout_ms` run concurrently on the same event loop.
"""

import asyncio

from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import to_public_error
from sglang_omni.entrypoints.http.request_body.ignored_fields import check_ignored_fields
from sglang_omni.entrypoints.http.request_body.reader import get_offload_size
from sglang_omni.entrypoints.realtime import client_events as client
from sglang_omni.entrypoints.realtime.audio_codec import decode_base64
from sglang_omni.entrypoints.realtime.conversation import ItemError
from sglang_omni.entrypoints.realtime.error_event import put_error
from sglang_omni.entrypoints.realtime.event_sender import EventSender, MonotonicClock
from sglang_omni.entrypoints.realtime.field_rules import EVENT_RULES
from sglang_omni.entrypoints.realtime.item_conversion import parse_item, parse_items
from sglang_omni.entrypoints.realtime.items import JSON, Item, item_to_json, make_id
from sglang_omni.entrypoints.realtime.parsing import get_event_id, parse_event, parse_object
from sglang_omni.entrypoints.realtime.protocol_version import GA, ProtocolVersion
from sglang_omni.entrypoints.realtime.response import ResponseConfig
from sglang_omni.entrypoints.realtime.session_config import (
    AnswerConfig,
    SessionConfig,
    apply_update,
    build_transcription_session,
    configure_response,
)
from sglang_omni.entrypoints.realtime.session_schema import ResponseBody, SessionType
from sglang_omni.entrypoints.realtime.text_limit import (
    measure_answer_texts,
    measure_item_texts,
    measure_response_texts,
)
from sglang_omni.entrypoints.realtime.turn_controller import TurnController
from sglang_omni.entrypoints.text_limit import check_text_length
from sglang_omni.media.vad import Detector
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.compat.adapt import adapt
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.unicode import check_unicode


class RealtimeSession:
    """Maps client events to calls of the turn controller."""

    def __init__(
        self,
        backend: Backend,
        options: RealtimeOptions,
        sender: EventSender,
        detector: Detector,
        clock: MonotonicClock,
        protocol_version: ProtocolVersion = GA,
        tenant: str | None = None,
        owner: str | None = None,
        trace_recorder: TraceRecorder | None = None,
        model: str | None = None,
        session_type: SessionType = "realtime",
    ) -> None:
        """Create a session.

        Args:
            backend: Answers requests.
            options: Limits of the session.
            sender: Queue of events to the client.
            detector: Estimates the probability of speech.
            clock: Source of the time.
            protocol_version: Version that the client speaks.
            tenant: Whom requests count for.
            owner: Whose stored voices may be used.
            trace_recorder: Traces each response.
            model: Name of the model that the client used; None: the main name.
            session_type: What the session is until an update says otherwise.

        Raises:
            EngineUnavailable: The backend does not know its voices yet.
        """
        self._backend, self._sender, self._protocol_version = backend, sender, protocol_version
        config = SessionConfig(
            model or backend.model,
            AnswerConfig(backend.default_voice, backend.default_system, owner),
        )
        if session_type == "transcription":
            config = build_transcription_session(config)
        self._turn_controller = TurnController(
            config,
            backend,
            options,
            sender,
            detector,
            clock,
            tenant,
            trace_recorder or TraceRecorder(),
        )
        self.id = make_id("sess")

    def start(self) -> None:
        """Start to listen, and send the first events."""
        self._turn_controller.start()
        self._sender.put("session.created", session=self._to_json())
        conversation = {
            "id": self._turn_controller.conversation_id,
            "object": "realtime.conversation",
        }
        self._sender.put("conversation.created", conversation=conversation)

    async def close(self) -> None:
        """Stop every task of the session and wait for it."""
        await self._turn_controller.close()

    async def wait_until_idle(self) -> None:
        """Return once no response is active."""
        await self._turn_controller.wait_until_idle()

    async def handle(self, frame: str) -> None:
        """Handle one frame. Send an `error` event if it is invalid."""
        value: JSON = {}
        try:
            size = get_offload_size(frame)
            value = await run_off_loop(size, parse_object, frame)
            if not size:
                check_unicode(value)
            adapted = await run_off_loop(
                size, adapt, EVENT_RULES, self._protocol_version.from_client(value)
            )
            check_ignored_fields(adapted.ignored, strict=self._backend.strict_fields)
            event = await run_off_loop(size, parse_event, adapted.fields)
            await self._dispatch(event, adapted.ignored)
        except Exception as error:
            put_error(self._sender, to_public_error(error), get_event_id(value))

    async def _dispatch(self, event: client.Event, ignored: frozenset[str]) -> None:
        controller, conversation = self._turn_controller, self._turn_controller.conversation
        match event:
            case client.InputAudioBufferAppend(audio=audio):
                data = await run_off_loop(get_offload_size(audio), decode_base64, audio)
                await controller.append_audio(data)
            case client.InputAudioBufferCommit():
                controller.commit()
            case client.InputAudioBufferClear():
                controller.clear()
            case client.SessionUpdate(session=body):
                check_text_length(
                    measure_answer_texts(body, "session"), self._backend.context_length
                )
                controller.configure(apply_update(controller.config, body, self._backend))
                told = {"ignored_fields": sorted(ignored)} if ignored else {}
                self._sender.put("session.updated", session=self._to_json(), **told)
            case client.ResponseCreate(response=body):
                await self._create_response(body)
            case client.ResponseCancel(response_id=response_id):
                await controller.cancel(response_id)
            case client.ItemCreate():
                await self._create_item(event)
            case client.ItemDelete(item_id=item_id):
                conversation.delete(item_id)
                self._sender.put("conversation.item.deleted", item_id=item_id)
            case client.ItemRetrieve(item_id=item_id):
                item = item_to_json(conversation.find(item_id, "retrieve"), with_audio=True)
                self._sender.put("conversation.item.retrieved", item=item)
            case client.ItemTruncate():
                self._truncate_item(event)
            case client.OutputAudioBufferClear():
                raise InvalidRequest(
                    "output_audio_buffer.clear: only for WebRTC and SIP; over a WebSocket the "
                    "client plays the audio: stop playback, then send conversation.item.truncate",
                    param="type",
                )

    def _to_json(self) -> JSON:
        return {"id": self.id, **self._turn_controller.config.to_json()}

    async def _create_item(self, event: client.ItemCreate) -> None:
        check_text_length(measure_item_texts(event.item, "item"), self._backend.context_length)
        wire = self._turn_controller.config.input_format
        # Decoding a recording of minutes is slow, so it runs on a thread.
        item = await asyncio.to_thread(parse_item, event.item, wire, "item")
        if not self._turn_controller.conversation.has_room(item):
            message = "item: the conversation is full; delete items or open a new session"
            raise ItemError(message, "conversation_full", "item")
        self._turn_controller.add(item, event.previous_item_id)

    def _truncate_item(self, event: client.ItemTruncate) -> None:
        conversation, item_id = self._turn_controller.conversation, event.item_id
        conversation.find(item_id, "truncate")
        speech = conversation.find_speech(item_id)
        if speech is None or event.content_index != 0:
            message = f"content_index: item {item_id} has no speech at this index"
            raise ItemError(message, "item_truncate_invalid_content", "content_index")
        if event.audio_end_ms > speech.duration_ms:
            message = f"audio_end_ms: the audio is {speech.duration_ms:.0f} ms long"
            raise ItemError(message, "item_truncate_invalid_audio_end", "audio_end_ms")
        self._turn_controller.truncate(item_id, speech, float(event.audio_end_ms))
        fields = event.model_dump(include={"item_id", "content_index", "audio_end_ms"})
        self._sender.put("conversation.item.truncated", **fields)

    async def _create_response(self, body: ResponseBody) -> None:
        controller = self._turn_controller
        if controller.config.type == "transcription":
            raise InvalidRequest("type: a transcription session gives no answers", param="type")
        check_text_length(measure_response_texts(body), self._backend.context_length)
        answers = configure_response(controller.config, body, self._backend)
        conversation = controller.conversation if body.conversation == "auto" else None
        config = ResponseConfig(answers, conversation, controller.conversation_id, body.metadata)
        controller.create_response(config, await self._get_context(body))

    async def _get_context(self, body: ResponseBody) -> list[Item]:
        """Return the context of a response: its own `input`, or the conversation."""
        conversation = self._turn_controller.conversation
        if body.input is None:
            return list(conversation)
        wire = self._turn_controller.config.input_format
        items_by_id = {item.id: item for item in conversation}
        return await asyncio.to_thread(parse_items, body.input, wire, items_by_id)
