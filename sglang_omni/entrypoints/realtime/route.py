"""Serves `/v1/realtime`: OpenAI's Realtime protocol over a WebSocket."""

import asyncio
import logging
from typing import Annotated

from fastapi import APIRouter, WebSocket
from pydantic import Field
from starlette.websockets import WebSocketDisconnect, WebSocketState

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES, build_error_response, to_public_error
from sglang_omni.entrypoints.http.request_metadata import get_owner, get_tenant
from sglang_omni.entrypoints.realtime.beta import SUBPROTOCOL, is_beta_requested
from sglang_omni.entrypoints.realtime.client_events import Event
from sglang_omni.entrypoints.realtime.connection import ClientLeft, Connection, SystemMonotonicClock
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.protocol_version import BETA, GA, ProtocolVersion
from sglang_omni.entrypoints.realtime.session import RealtimeSession
from sglang_omni.entrypoints.realtime.session_schema import SessionType
from sglang_omni.entrypoints.requests.metadata import require_model
from sglang_omni.entrypoints.session_limiter import SessionLimiter
from sglang_omni.media.vad import Detector, SileroDetector
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import InvalidRequest, OmniError, Overloaded

logger = logging.getLogger(__name__)

SUBPROTOCOLS = ("realtime", SUBPROTOCOL)


class UpgradeRequired(InvalidRequest):
    """The request is not a WebSocket handshake."""

    status = 426
    code = "upgrade_required"


class StarletteSocket:
    """Adapts a Starlette WebSocket to the connection's `Socket`."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def receive(self) -> str:
        """Return the next frame.

        Raises:
            ClientLeft: The connection is closed.
            InvalidRequest: The frame is binary.
        """
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise ClientLeft
        if message.get("text") is None:
            raise InvalidRequest("an event must be a text frame that holds a JSON object")
        return str(message["text"])

    async def send(self, frame: str) -> None:
        """Send a frame. Wait while the client's window is full. Raises `ClientLeft`."""
        try:
            await self._websocket.send_text(frame)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ClientLeft from error

    async def close(self, code: int, reason: str) -> None:
        """Close the connection unless the client has closed it."""
        if self._websocket.application_state is WebSocketState.CONNECTED:
            await self._websocket.close(code, reason)


def routes(backend: Backend, trace_recorder: TraceRecorder) -> APIRouter:
    """Return the Realtime routes of `backend`; `trace_recorder` traces each response."""
    router = APIRouter(tags=["realtime"])
    limiter = SessionLimiter(backend.realtime.max_sessions)

    @router.websocket("/v1/realtime")
    async def realtime(
        websocket: WebSocket, model: str | None = None, intent: str | None = None
    ) -> None:
        """Talk to the model: events in both directions, speech in and out.

        With the `intent` transcription the session writes down each turn and answers none.
        """
        release = limiter.acquire()
        if release is None:
            error = Overloaded(
                f"the maximum of {limiter.num_active} realtime sessions is reached; retry later"
            )
            await _reject_handshake(websocket, error)
            return
        try:
            await _serve(websocket, model, intent, backend, trace_recorder)
        finally:
            release()

    @router.get("/v1/realtime", responses=RESPONSES)
    async def without_handshake() -> None:
        """Open a WebSocket; without its handshake the answer is an error.

        The events that a client may send are documented as a webhook, below.
        """
        raise UpgradeRequired("this route needs a WebSocket handshake")

    return router


def documentation() -> APIRouter:
    """Return the client events as a route for OpenAPI, which does not describe WebSockets."""
    router = APIRouter(tags=["realtime"])

    @router.post("/v1/realtime: an event of the client")
    async def client_event(event: Annotated[Event, Field(discriminator="type")]) -> None:
        """Each text frame of `WS /v1/realtime` holds one of these objects."""

    return router


async def _serve(
    websocket: WebSocket,
    model: str | None,
    intent: str | None,
    backend: Backend,
    trace_recorder: TraceRecorder,
) -> None:
    subprotocols = websocket.scope.get("subprotocols", [])
    protocol_version = BETA if is_beta_requested(websocket.headers, subprotocols) else GA
    try:
        if model is not None:
            model = require_model(model, backend)
        # The first detector loads its model. That must not block the event loop.
        detector = await asyncio.to_thread(SileroDetector)
        session_type = _parse_intent(intent)
        connection = connect(
            websocket, backend, protocol_version, detector, trace_recorder, model, session_type
        )
    except Exception as error:
        await _reject_handshake(websocket, to_public_error(error))
        return
    await websocket.accept(next((name for name in SUBPROTOCOLS if name in subprotocols), None))
    try:
        await connection.run()
    except Exception as error:
        logger.error("a realtime session failed: %s", to_public_error(error).code)


def connect(
    websocket: WebSocket,
    backend: Backend,
    protocol_version: ProtocolVersion,
    detector: Detector,
    trace_recorder: TraceRecorder,
    model: str | None = None,
    session_type: SessionType = "realtime",
) -> Connection:
    """Create a session for one client. Raises `EngineUnavailable` while the talker is loading."""
    options, clock = backend.realtime, SystemMonotonicClock()
    sender = EventSender(
        options.send_bytes, options.stall_seconds, clock, protocol_version.to_client
    )
    tenant = get_tenant(websocket)
    owner = get_owner(websocket)
    session = RealtimeSession(
        backend,
        options,
        sender,
        detector,
        clock,
        protocol_version,
        tenant,
        owner,
        trace_recorder,
        model,
        session_type,
    )
    return Connection(StarletteSocket(websocket), sender, session, options, clock, backend.draining)


def _parse_intent(intent: str | None) -> SessionType:
    """Return the type of session that a client asks for. Raises `InvalidRequest`."""
    if intent in (None, "transcription"):
        return "transcription" if intent else "realtime"
    raise InvalidRequest("intent: must be 'transcription', or left out", param="intent")


async def _reject_handshake(websocket: WebSocket, error: OmniError) -> None:
    """Answer the handshake with an HTTP error."""
    await websocket.send_denial_response(build_error_response(error))
