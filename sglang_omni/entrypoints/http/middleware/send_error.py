"""How a layer in front of the application says no, over HTTP and to a WebSocket."""

from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from sglang_omni.entrypoints.http.errors import error_response
from sglang_omni.protocol.errors import OmniError

# "Try again later" and "policy violation", of the WebSocket protocol.
TRY_AGAIN, POLICY = 1013, 1008
# A WebSocket can be refused by an HTTP response where the server offers this.
DENIAL = "websocket.http.response"


async def send_error(
    error: OmniError,
    scope: Scope,
    receive: Receive,
    send: Send,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer a connection with an error, in the envelope, instead of serving it."""
    if scope["type"] == "http" or DENIAL in scope.get("extensions", {}):
        await error_response(error, headers)(scope, receive, send)
        return
    code = POLICY if error.status in (401, 403) else TRY_AGAIN
    await send({"type": "websocket.close", "code": code, "reason": error.message[:120]})
