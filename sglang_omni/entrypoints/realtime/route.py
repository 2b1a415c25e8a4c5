"""`/v1/realtime`: OpenAI's Realtime protocol over a WebSocket."""

import asyncio
import logging
from typing import Annotated

from fastapi import APIRouter, WebSocket
from pydantic import Field
from starlette.websockets import WebSocketDisconnect, WebSocketState

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import require_model
from sglang_omni.entrypoints.http.errors import RESPONSES, build_error_response, to_public_error
from sglang_omni.entrypoints.http.request_metadata import get_owner, get_tenant
from sglang_omni.entrypoints.realtime.beta import SUBPROTOCOL, asks_for_beta
from sglang_omni.entrypoints.realtime.client_events import Event
from sglang_omni.entrypoints.realtime.connection import ClientLeft, Connection, SystemMonotonicClock
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.protocol_version import BETA, GA, ProtocolVersion
from sglang_omni.entrypoints.realtime.session import RealtimeSession
from sglang_omni.entrypoints.session_limiter import SessionLimiter
from sglang_omni.media.vad import Detector, SileroDetector
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import InvalidRequest, OmniError, Overloaded

logger = logging.getLogger(__name__)

SUBPROTOCOLS = ("realtime", SUBPROTOCOL)


class UpgradeRequired(InvalidRequest):
    """The route was asked for without the handshake of a WebSocket."""

    status = 426
    code = "upgrade_required"


class TextSocket:
    """A Starlette WebSocket as the connection uses it."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def receive(self) -> str:
        """The next frame. Raises `ClientLeft`; `InvalidRequest` for a binary frame."""
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise ClientLeft
        if message.get("text") is None:
            raise InvalidRequest("an event is a text frame that holds a JSON object")
        return str(message["text"])

    async def send(self, frame: str) -> None:
        """Send a frame; waits while the client's window is full. Raises `ClientLeft`."""
        try:
            await self._websocket.send_text(frame)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ClientLeft from error

    async def close(self, code: int, reason: str) -> None:
        """Close from this side, unless the client has."""
        if self._websocket.application_state is WebSocketState.CONNECTED:
            await self._websocket.close(code, reason)


def routes(backend: Backend, observer: TraceRecorder) -> APIRouter:
    """The realtime route of `backend`; `observer` sees each response."""
    router = APIRouter(tags=["realtime"])
    seats = SessionLimiter(backend.realtime.max_sessions)

    @router.websocket("/v1/realtime")
    async def realtime(websocket: WebSocket, model: str | None = None) -> None:
        """Talk to the model: events both ways, speech in and out."""
        leave = seats.acquire()
        if leave is None:
            error = Overloaded(f"there are {seats.num_active} realtime sessions, the most allowed")
            await _refuse(websocket, error)
            return
        try:
            await _serve(websocket, model, backend, observer)
        finally:
            leave()

    @router.get("/v1/realtime", responses=RESPONSES)
    async def without_handshake() -> None:
        """Begins a WebSocket; without its handshake an error. The events that a client may send
        are documented as a webhook, below."""
        raise UpgradeRequired("this route is a WebSocket")

    return router


def documentation() -> APIRouter:
    """The events of clients for the generated documentation, which knows no WebSockets."""
    router = APIRouter(tags=["realtime"])

    @router.post("/v1/realtime: an event of the client")
    async def client_event(event: Annotated[Event, Field(discriminator="type")]) -> None:
        """A text frame of `WS /v1/realtime` holds one of these objects."""

    return router


async def _serve(
    websocket: WebSocket, model: str | None, backend: Backend, observer: TraceRecorder
) -> None:
    offered = websocket.scope.get("subprotocols", [])
    dialect = BETA if asks_for_beta(websocket.headers, offered) else GA
    try:
        if model is not None:
            require_model(model, backend)
        # The first one loads the model, for which the other streams must not wait.
        detector = await asyncio.to_thread(SileroDetector)
        connection = connect(websocket, backend, dialect, detector, observer)
    except Exception as error:
        await _refuse(websocket, to_public_error(error))
        return
    await websocket.accept(next((name for name in SUBPROTOCOLS if name in offered), None))
    try:
        await connection.run()
    except Exception as error:
        logger.error("a realtime session broke off: %s", to_public_error(error).code)


def connect(
    websocket: WebSocket,
    backend: Backend,
    dialect: ProtocolVersion,
    detector: Detector,
    observer: TraceRecorder,
) -> Connection:
    """A session for one client. Raises `EngineUnavailable` while the talker is not loaded."""
    options, clock = backend.realtime, SystemMonotonicClock()
    outbox = EventSender(options.send_bytes, options.stall_seconds, clock, dialect.to_client)
    tenant = get_tenant(websocket)
    owner = get_owner(websocket)
    session = RealtimeSession(
        backend, options, outbox, detector, clock, dialect, tenant, owner, observer
    )
    return Connection(TextSocket(websocket), outbox, session, options, clock, backend.draining)


async def _refuse(websocket: WebSocket, error: OmniError) -> None:
    """Answer the handshake with an HTTP error."""
    await websocket.send_denial_response(build_error_response(error))
