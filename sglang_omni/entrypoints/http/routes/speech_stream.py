"""`WS /v1/audio/speech/stream`: a text spoken while it is written, an LLM's tokens for instance.

The client sends `session.config` once, then `input.text` as often as it likes, and `input.done`
where a text ends; another may follow. The server answers each piece that it speaks with
`audio.start` (what is spoken), binary frames (the audio) and `audio.done`, and each text with
`session.done`. All frames of a text, joined, are one file.
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
from sglang_omni.entrypoints.http.audio_output import check_spoken, choose_output, require_model
from sglang_omni.entrypoints.http.errors import (
    build_envelope,
    build_error_response,
    to_invalid_request,
    to_public_error,
)
from sglang_omni.entrypoints.http.request_body.json_parse import parse_json
from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.entrypoints.http.request_body.reader import MAX_SMALL_BODY_BYTES, get_offload_size
from sglang_omni.entrypoints.http.request_metadata import owner_of, terms_of
from sglang_omni.entrypoints.http.responses.cancellable import require_finished
from sglang_omni.entrypoints.http.routes.speech import usage_json
from sglang_omni.entrypoints.http.speech_options import build_speech_request
from sglang_omni.entrypoints.session_limiter import SessionLimiter
from sglang_omni.entrypoints.unicode import check_json
from sglang_omni.entrypoints.work_threads import run_off_loop
from sglang_omni.media.encode import AudioFormat, OutputAudioEncoder
from sglang_omni.pipeline.request import AudioDelta, Finished, TranscriptDelta
from sglang_omni.protocol.body import Body
from sglang_omni.protocol.errors import Draining, InvalidRequest, OmniError, Overloaded
from sglang_omni.protocol.speech import SpeechOptions

MOST_CHARACTERS = 128 << 10
# Events of the client that wait to be looked at; its frames beyond wait in the socket.
WAITING = 64
FIRST_EVENT_S = 10.0
GOING_AWAY, POLICY, BROKEN = 1001, 1008, 1011


class SpeechStreamConfig(SpeechOptions):
    """How the texts that follow are to be spoken."""

    type: Literal["session.config"]
    model: str | None = None
    response_format: AudioFormat = "pcm"


class TextInput(Body):
    """More of the text."""

    type: Literal["input.text"]
    text: Annotated[str, Field(max_length=MOST_CHARACTERS)]


class InputDone(Body):
    """The text is complete."""

    type: Literal["input.done"]


class SessionClose(Body):
    """Stop speaking and close."""

    type: Literal["session.close"]


ClientEvent = Annotated[
    SpeechStreamConfig | TextInput | InputDone | SessionClose, Field(discriminator="type")
]
EVENTS: TypeAdapter[Any] = TypeAdapter(ClientEvent)


def parse(frame: str) -> Any:
    """An event of the client. Raises `InvalidRequest`, naming the field."""
    text = frame.encode()
    try:
        if len(text) > MAX_SMALL_BODY_BYTES:
            return EVENTS.validate_python(parse_json(text, "the event"))
        check_small_json(text)
        check_json(text)
        return EVENTS.validate_json(text)
    except ValidationError as error:
        problems = [{**one, "loc": ("body", *one["loc"][1:])} for one in error.errors()]
        raise to_invalid_request(problems) from None


class TextFeed:
    """The text of one reading, from whoever receives it to whoever speaks it."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()

    def put(self, piece: str) -> None:
        """More of it."""
        self._pieces.put_nowait(piece)

    def close(self) -> None:
        """All of it is there."""
        self._pieces.put_nowait(None)

    async def pieces(self) -> AsyncGenerator[str, None]:
        """What comes, up to its end."""
        while (piece := await self._pieces.get()) is not None:
            yield piece


class SpeechSession:
    """One client: a task reads its events, this one speaks."""

    def __init__(self, socket: WebSocket, backend: Backend) -> None:
        self._socket, self._backend = socket, backend
        self._events: asyncio.Queue[Any] = asyncio.Queue(WAITING)
        self._config = SpeechStreamConfig(type="session.config")
        self._texts = 0
        self._over = False

    async def run(self) -> None:
        """Serve until the client leaves or closes. Raises `OmniError` for what ends the session."""
        reading = asyncio.create_task(self._read())
        try:
            first = await self._next(FIRST_EVENT_S)
            if first is not None and not isinstance(first, SpeechStreamConfig):
                raise InvalidRequest("the first event must be session.config", param="type")
            while not self._over and first is not None and not isinstance(first, SessionClose):
                await self._handle(first)
                if not self._over:
                    first = await self._next(self._backend.realtime.idle_seconds)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _handle(self, event: Any) -> None:
        if isinstance(event, SpeechStreamConfig):
            if event.model is not None:
                require_model(event.model, self._backend)
            if event.task != "speech":
                raise InvalidRequest("task: only speech can be written on", param="task")
            self._config = event
            # Refused now, not with the first word.
            build_speech_request(
                "a", event, self._backend, terms_of(self._socket, event), self._owner
            )
            choose_output(event.response_format, event.sample_rate, self._backend)
        elif isinstance(event, TextInput):
            await self._speak(event)
        else:
            raise InvalidRequest("input.done: there is no text", param="type")

    async def _speak(self, first: TextInput) -> None:
        """Speak a text while the rest of it arrives."""
        feed = TextFeed()
        self._put(first.text, feed)
        speaking = asyncio.create_task(self._say(feed))
        try:
            while not speaking.done():
                receiving = asyncio.ensure_future(self._events.get())
                await asyncio.wait((speaking, receiving), return_when=asyncio.FIRST_COMPLETED)
                if not receiving.done():
                    receiving.cancel()
                    break
                if not self._take(receiving.result(), feed):
                    return
            await speaking
        finally:
            speaking.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await speaking

    def _put(self, piece: str, feed: TextFeed) -> None:
        """More of a text. Raises `InvalidRequest` for what the checkpoint does not speak."""
        check_spoken(piece, self._backend.capabilities, "text")
        feed.put(piece)

    def _take(self, event: Any, feed: TextFeed) -> bool:
        """An event that comes while a text is spoken; False if it ends the session."""
        match event:
            case TextInput(text=text):
                self._put(text, feed)
            case InputDone():
                feed.close()
            case Exception():
                raise event
            case SpeechStreamConfig():
                raise InvalidRequest("session.config: wait for session.done", param="type")
            case _:
                self._over = True
                return False
        return True

    async def _say(self, feed: TextFeed) -> None:
        config, backend = self._config, self._backend
        terms = terms_of(self._socket, config)
        terms = replace(terms, id=f"{terms.id}-{self._texts}")
        self._texts += 1
        request = build_speech_request("", config, backend, terms, self._owner)
        output = choose_output(config.response_format, config.sample_rate, backend, config.speed)
        encoder, index = output.encoder(streaming=True), -1
        async with aclosing(
            require_finished(backend.stream_speech(request, feed.pieces()))
        ) as events:
            async for event in events:
                match event:
                    case TranscriptDelta(text):
                        if index >= 0:
                            await self._send({"type": "audio.done", "index": index})
                        index += 1
                        about = {"format": output.format, "sample_rate": output.sample_rate}
                        await self._send(
                            {"type": "audio.start", "index": index, "text": text, **about}
                        )
                    case AudioDelta(pcm):
                        await self._send(await encoder.encode(pcm))
                    case Finished():
                        await self._end(event, encoder, index)

    async def _end(self, finished: Finished, encoder: OutputAudioEncoder, index: int) -> None:
        await self._send(await encoder.close())
        if index >= 0:
            await self._send({"type": "audio.done", "index": index})
        usage = usage_json(finished.usage)
        await self._send({"type": "session.done", "usage": usage, "reason": finished.reason})

    async def _send(self, message: dict[str, Any] | bytes) -> None:
        """Send, and wait while the client's window is full. Raises `SpeechClientTooSlow`."""
        if not message:
            return
        try:
            async with asyncio.timeout(self._backend.realtime.stall_seconds):
                if isinstance(message, bytes):
                    await self._socket.send_bytes(message)
                else:
                    await self._socket.send_json(message)
        except TimeoutError:
            raise SpeechClientTooSlow("the client takes nothing") from None

    async def _next(self, seconds: float) -> Any:
        """The next event, None when the client has left. Raises `Expired` after `seconds`, and
        `Draining` when the server ends."""
        event = asyncio.ensure_future(self._events.get())
        draining = asyncio.ensure_future(self._backend.draining.wait())
        try:
            waiting = (event, draining)
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if event.done():
                if isinstance(event.result(), Exception):
                    raise event.result()
                return event.result()
            if draining.done():
                raise Draining("the server is shutting down; begin a new session")
            raise Expired(f"no event came for {seconds:g} s")
        finally:
            event.cancel()
            draining.cancel()

    async def _read(self) -> None:
        """Hand over what the client sends; its end is a None, what is wrong an error."""
        while True:
            try:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    event = None
                elif message.get("text") is None:
                    raise InvalidRequest("an event is a text frame that holds a JSON object")
                else:
                    event = await run_off_loop(
                        get_offload_size(message["text"]), parse, message["text"]
                    )
            except WebSocketDisconnect:
                event = None
            except InvalidRequest as error:
                event = error
            await self._events.put(event)
            if event is None:
                return

    @property
    def _owner(self) -> str | None:
        return owner_of(self._socket)


class Expired(InvalidRequest):
    """Nothing came from the client for too long."""

    code = "session_expired"


class SpeechClientTooSlow(InvalidRequest):
    """The client reads nothing of what it is sent."""

    code = "slow_reader"


def routes(backend: Backend) -> APIRouter:
    """The streaming route of `backend`."""
    router = APIRouter(tags=["audio"])
    seats = SessionLimiter(backend.realtime.max_sessions)

    @router.websocket("/v1/audio/speech/stream")
    async def speech_stream(websocket: WebSocket) -> None:
        """Speak a text while it is written."""
        leave = seats.take()
        if leave is None:
            error = Overloaded(f"there are {seats.taken} speech sessions, the most allowed")
            await websocket.send_denial_response(build_error_response(error))
            return
        try:
            await websocket.accept()
            await _serve(websocket, backend)
        finally:
            leave()

    return router


def documentation() -> APIRouter:
    """The events of clients for the generated documentation, which knows no WebSockets."""
    router = APIRouter(tags=["audio"])

    @router.post("/v1/audio/speech/stream: an event of the client")
    async def client_event(event: ClientEvent) -> None:
        """A text frame of `WS /v1/audio/speech/stream` holds one of these objects."""

    return router


async def _serve(websocket: WebSocket, backend: Backend) -> None:
    """Run a session; whatever ends it is told to the client, if that is still there."""
    try:
        await SpeechSession(websocket, backend).run()
        code, reason = 1000, ""
    except WebSocketDisconnect:
        return
    except Exception as error:
        known = to_public_error(error)
        code, reason = _close_code(known), known.code
        with suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            async with asyncio.timeout(1.0):
                await websocket.send_json({"type": "error", **build_envelope(known)})
    if websocket.application_state is WebSocketState.CONNECTED:
        with suppress(WebSocketDisconnect, RuntimeError):
            await websocket.close(code, reason)


def _close_code(error: OmniError) -> int:
    if isinstance(error, Draining | Expired):
        return GOING_AWAY
    return POLICY if isinstance(error, InvalidRequest) else BROKEN
