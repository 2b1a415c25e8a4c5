"""Error responses of middleware, for HTTP requests and WebSocket handshakes."""

from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from sglang_omni.entrypoints.http.errors import build_error_response
from sglang_omni.protocol.errors import OmniError

# WebSocket close codes.
TRY_AGAIN_LATER, POLICY_VIOLATION = 1013, 1008
# With this ASGI extension, a WebSocket handshake can be rejected by an HTTP response.
DENIAL_EXTENSION = "websocket.http.response"


async def send_error(
    error: OmniError,
    scope: Scope,
    receive: Receive,
    send: Send,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Reject a connection with an error, in OpenAI's error format."""
    if scope["type"] == "http" or DENIAL_EXTENSION in scope.get("extensions", {}):
        await build_error_response(error, headers)(scope, receive, send)
        return
    code = POLICY_VIOLATION if error.status in (401, 403) else TRY_AGAIN_LATER
    await send({"type": "websocket.close", "code": code, "reason": error.message[:120]})
