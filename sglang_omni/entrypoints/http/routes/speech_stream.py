"""The route `WS /v1/audio/speech/stream`, which speaks a text while it is written.

The text may come from an LLM token by token. The client sends `session.config`, then any number of
`input.text`, and `input.done` at the end of a text; another text may follow. For each segment the
server sends `audio.start` (with its text), binary frames (the audio) and `audio.done`, and for each
text `session.done`. A `notice` lists words that the model does not speak. With `timestamps` an
`audio.timestamps` follows the audio of each of its parts. The joined frames of a text are one file.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, WebSocket
from pydantic import Field, TypeAdapter, ValidationError
from starlette.websockets import WebSocketDisconnect, WebSocketState

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import choose_output
from sglang_omni.entrypoints.http.complete_speech import build_usage
from sglang_omni.entrypoints.http.errors import (
    build_envelope,
    build_error_response,
    to_public_error,
)
from sglang_omni.entrypoints.http.request_body.json_parse import parse_json
from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.entrypoints.http.request_body.json_unicode import check_json_unicode
from sglang_omni.entrypoints.http.request_body.reader import MAX_SMALL_BODY_BYTES, get_offload_size
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata, get_owner
from sglang_omni.entrypoints.notices import build_notice
from sglang_omni.entrypoints.requests.metadata import require_model
from sglang_omni.entrypoints.requests.speech import build_speech_request
from sglang_omni.entrypoints.requests.validation import to_invalid_request
from sglang_omni.entrypoints.requests.voices import check_speakable
from sglang_omni.entrypoints.session_limiter import SessionLimiter
from sglang_omni.entrypoints.timestamps import describe_segment
from sglang_omni.media.encode import OutputAudioEncoder
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    TimedSegment,
    TranscriptDelta,
    UnspokenText,
)
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.body import Body
from sglang_omni.protocol.errors import Draining, InvalidRequest, OmniError, Overloaded
from sglang_omni.protocol.speech import SpeechOptions

MAX_TEXT_CHARACTERS = 128 << 10
# Client events in the queue. Further frames wait in the socket.
MAX_QUEUED_EVENTS = 64
FIRST_EVENT_TIMEOUT_S = 10.0
GOING_AWAY, POLICY_VIOLATION, INTERNAL_ERROR = 1001, 1008, 1011


class SpeechStreamConfig(SpeechOptions):
    """Options of the texts that follow."""

    type: Literal["session.config"]
    model: str | None = None
    response_format: AudioFormat = "pcm"


class TextInput(Body):
    """The next part of the text."""

    type: Literal["input.text"]
    text: Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)]


class InputDone(Body):
    """The text is complete."""

    type: Literal["input.done"]


class SessionClose(Body):
    """Stop speaking and close the session."""

    type: Literal["session.close"]


ClientEvent = Annotated[
    SpeechStreamConfig | TextInput | InputDone | SessionClose, Field(discriminator="type")
]
EVENT_ADAPTER: TypeAdapter[Any] = TypeAdapter(ClientEvent)


def parse_event(frame: str) -> Any:
    """Return the client event of a frame. Raises `InvalidRequest`, naming the field."""
    text = frame.encode()
    try:
        if len(text) > MAX_SMALL_BODY_BYTES:
            return EVENT_ADAPTER.validate_python(parse_json(text, "the event"))
        check_small_json(text)
        check_json_unicode(text)
        return EVENT_ADAPTER.validate_json(text)
    except ValidationError as error:
        problems = [{**detail, "loc": ("body", *detail["loc"][1:])} for detail in error.errors()]
        raise to_invalid_request(problems) from None


class TextFeed:
    """Queue of the parts of one text, from the receiver to the talker."""

    def __init__(self) -> None:
        self._parts: asyncio.Queue[str | None] = asyncio.Queue()

    def put(self, part: str) -> None:
        """Add the next part."""
        self._parts.put_nowait(part)

    def close(self) -> None:
        """Mark the text as complete."""
        self._parts.put_nowait(None)

    async def stream(self) -> AsyncGenerator[str, None]:
        """Yield the parts up to the end of the text."""
        while (part := await self._parts.get()) is not None:
            yield part


class SpeechSession:
    """One client's session. One task reads its events, another speaks."""

    def __init__(self, websocket: WebSocket, backend: Backend) -> None:
        self._websocket, self._backend = websocket, backend
        self._events: asyncio.Queue[Any] = asyncio.Queue(MAX_QUEUED_EVENTS)
        self._config = SpeechStreamConfig(type="session.config")
        self._num_texts = 0
        self._is_closed = False

    async def run(self) -> None:
        """Serve until the client disconnects or closes. Raises `OmniError` on a fatal error."""
        read_task = asyncio.create_task(self._read_events())
        try:
            event = await self._next_event(FIRST_EVENT_TIMEOUT_S)
            if event is not None and not isinstance(event, SpeechStreamConfig):
                raise InvalidRequest("the first event must be session.config", param="type")
            while not (self._is_closed or event is None or isinstance(event, SessionClose)):
                await self._handle(event)
                if not self._is_closed:
                    event = await self._next_event(self._backend.realtime.idle_seconds)
        finally:
            read_task.cancel()
            await asyncio.gather(read_task, return_exceptions=True)

    async def _handle(self, event: Any) -> None:
        """Handle an event while no text is spoken. Raises `InvalidRequest`."""
        if isinstance(event, SpeechStreamConfig):
            if event.model is not None:
                require_model(event.model, self._backend)
            if event.task != "speech":
                raise InvalidRequest("task: this route supports only 'speech'", param="task")
            self._config = event
            # Report invalid options now, not with the first text.
            metadata = build_request_metadata(self._websocket, event)
            build_speech_request("a", event, self._backend, metadata, self._owner)
            choose_output(event.response_format, event.sample_rate, self._backend)
        elif isinstance(event, TextInput):
            await self._speak(event)
        else:
            raise InvalidRequest("input.done: no input.text came before it", param="type")

    async def _speak(self, first: TextInput) -> None:
        """Speak a text while the rest of it arrives."""
        feed = TextFeed()
        self._add_text(first.text, feed)
        speak_task = asyncio.create_task(self._send_speech(feed))
        try:
            while not speak_task.done():
                event_task = asyncio.ensure_future(self._events.get())
                await asyncio.wait((speak_task, event_task), return_when=asyncio.FIRST_COMPLETED)
                if not event_task.done():
                    event_task.cancel()
                    break
                if not self._handle_while_speaking(event_task.result(), feed):
                    return
            await speak_task
        finally:
            speak_task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await speak_task

    def _add_text(self, part: str, feed: TextFeed) -> None:
        """Add part of a text. Raises `InvalidRequest` if the checkpoint cannot speak it."""
        check_speakable(part, self._backend.capabilities, "text")
        feed.put(part)

    def _handle_while_speaking(self, event: Any, feed: TextFeed) -> bool:
        """Handle an event while a text is spoken, and return whether the session continues."""
        match event:
            case TextInput(text=text):
                self._add_text(text, feed)
            case InputDone():
                feed.close()
            case Exception():
                raise event
            case SpeechStreamConfig():
                raise InvalidRequest("session.config: wait for session.done", param="type")
            case _:
                self._is_closed = True
                return False
        return True

    async def _send_speech(self, feed: TextFeed) -> None:
        """Send the audio of one text, segment by segment."""
        config, backend = self._config, self._backend
        metadata = build_request_metadata(self._websocket, config)
        metadata = replace(metadata, id=f"{metadata.id}-{self._num_texts}")
        self._num_texts += 1
        request = build_speech_request("", config, backend, metadata, self._owner)
        output = choose_output(config.response_format, config.sample_rate, backend, config.speed)
        encoder, index, num_timed = output.make_encoder(streaming=True), -1, 0
        async with aclosing(
            require_finished(backend.stream_speech(request, feed.stream()))
        ) as events:
            async for event in events:
                match event:
                    case TranscriptDelta(text):
                        if index >= 0:
                            await self._send({"type": "audio.done", "index": index})
                        index += 1
                        audio_info = {"format": output.format, "sample_rate": output.sample_rate}
                        await self._send(
                            {"type": "audio.start", "index": index, "text": text, **audio_info}
                        )
                    case UnspokenText():
                        await self._send({"type": "notice", "index": index, **build_notice(event)})
                    case AudioDelta(pcm):
                        await self._send(await encoder.encode(pcm))
                    case TimedSegment():
                        times = describe_segment(output.time_segment(event), num_timed)
                        await self._send({"type": "audio.timestamps", "index": index, **times})
                        num_timed += 1
                    case Finished():
                        await self._send_end(event, encoder, index)

    async def _send_end(self, finished: Finished, encoder: OutputAudioEncoder, index: int) -> None:
        await self._send(await encoder.close())
        if index >= 0:
            await self._send({"type": "audio.done", "index": index})
        usage = build_usage(finished.usage)
        await self._send({"type": "session.done", "usage": usage, "reason": finished.reason})

    async def _send(self, message: dict[str, Any] | bytes) -> None:
        """Send a message once the client has read enough. Raises `SpeechClientTooSlow`."""
        if not message:
            return
        try:
            async with asyncio.timeout(self._backend.realtime.stall_seconds):
                if isinstance(message, bytes):
                    await self._websocket.send_bytes(message)
                else:
                    await self._websocket.send_json(message)
        except TimeoutError:
            raise SpeechClientTooSlow("the client does not read its messages") from None

    async def _next_event(self, timeout_s: float) -> Any:
        """Return the next event, or None if the client disconnected.

        Raises:
            SpeechSessionExpired: No event arrived within `timeout_s` seconds.
            Draining: The server is shutting down.
            InvalidRequest: The client sent an invalid event.
        """
        event_task = asyncio.ensure_future(self._events.get())
        drain_task = asyncio.ensure_future(self._backend.draining.wait())
        try:
            tasks = (event_task, drain_task)
            await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if event_task.done():
                if isinstance(event_task.result(), Exception):
                    raise event_task.result()
                return event_task.result()
            if drain_task.done():
                raise Draining("the server is shutting down; start a new session")
            raise SpeechSessionExpired(f"no event came for {timeout_s:g} s")
        finally:
            event_task.cancel()
            drain_task.cancel()

    async def _read_events(self) -> None:
        """Queue the client's events: None for a disconnect, an error for an invalid event."""
        while True:
            try:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    event = None
                elif message.get("text") is None:
                    raise InvalidRequest("an event must be a text frame with a JSON object")
                else:
                    text = message["text"]
                    event = await run_off_loop(get_offload_size(text), parse_event, text)
            except WebSocketDisconnect:
                event = None
            except InvalidRequest as error:
                event = error
            await self._events.put(event)
            if event is None:
                return

    @property
    def _owner(self) -> str | None:
        return get_owner(self._websocket)


class SpeechSessionExpired(InvalidRequest):
    """The client sent no event for too long."""

    code = "session_expired"


class SpeechClientTooSlow(InvalidRequest):
    """The client does not read what the server sends."""

    code = "slow_reader"


def create_router(backend: Backend) -> APIRouter:
    """Return the route of `backend` for streaming text."""
    router = APIRouter(tags=["audio"])
    sessions = SessionLimiter(backend.realtime.max_sessions)

    @router.websocket("/v1/audio/speech/stream")
    async def speech_stream(websocket: WebSocket) -> None:
        """Speak a text while it is written."""
        release = sessions.acquire()
        if release is None:
            limit = sessions.num_active
            error = Overloaded(f"the limit of {limit} speech sessions is reached; retry later")
            await websocket.send_denial_response(build_error_response(error))
            return
        try:
            await websocket.accept()
            await _serve(websocket, backend)
        finally:
            release()

    return router


def create_documentation_router() -> APIRouter:
    """Return a route that documents the client events, because OpenAPI has no WebSockets."""
    router = APIRouter(tags=["audio"])

    @router.post("/v1/audio/speech/stream: an event of the client")
    async def client_event(event: ClientEvent) -> None:
        """Send one of these objects in a text frame of `WS /v1/audio/speech/stream`."""

    return router


async def _serve(websocket: WebSocket, backend: Backend) -> None:
    """Run a session. If an error ends it, send the error to the client if still connected."""
    try:
        await SpeechSession(websocket, backend).run()
        code, reason = 1000, ""
    except WebSocketDisconnect:
        return
    except Exception as error:
        public_error = to_public_error(error)
        code, reason = _choose_close_code(public_error), public_error.code
        with suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            async with asyncio.timeout(1.0):
                await websocket.send_json({"type": "error", **build_envelope(public_error)})
    if websocket.application_state is WebSocketState.CONNECTED:
        with suppress(WebSocketDisconnect, RuntimeError):
            await websocket.close(code, reason)


def _choose_close_code(error: OmniError) -> int:
    if isinstance(error, Draining | SpeechSessionExpired):
        return GOING_AWAY
    return POLICY_VIOLATION if isinstance(error, InvalidRequest) else INTERNAL_ERROR
