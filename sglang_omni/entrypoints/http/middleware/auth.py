"""Who may ask: API keys over HTTP and WebSockets, and which pages may open a WebSocket."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sglang_omni.entrypoints.api_keys import Keys
from sglang_omni.entrypoints.http.middleware.hosts import require_host
from sglang_omni.entrypoints.http.middleware.send_error import send_error
from sglang_omni.entrypoints.http.paths import is_admin, is_open
from sglang_omni.entrypoints.http.request_body.json_route import get_media_type, is_json_type
from sglang_omni.observability.trace import current_trace
from sglang_omni.protocol.errors import Forbidden, OmniError, Unauthorized

# How a browser, which cannot set headers for a WebSocket, presents a key.
SUBPROTOCOL = "openai-insecure-api-key."
# Methods that change nothing; without CORS, what they return is kept from other sites' pages.
READING = frozenset({"GET", "HEAD", "OPTIONS"})
CHALLENGE = {"WWW-Authenticate": "Bearer"}


@dataclass
class Access:
    """Who may do what; the keys may be replaced while it serves.

    Without `keys` anybody may ask for inference; without `admin_keys` nobody may do what an
    administrator does. Pages of `origins` may read answers and open WebSockets, as may pages of
    this server itself; "*" is all of them. Requests must name one of `hosts` as their host; without
    any, or with "*", they may name any."""

    keys: Keys = field(default_factory=Keys)
    admin_keys: Keys = field(default_factory=Keys)
    origins: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()


class AuthMiddleware:
    """ASGI layer that admits whoever `access` lets in.

    In `scope["state"]`, `tenant` names the owner of the key, `owner` does so across restarts,
    `admin` says whether it is an administrator's, and `trusted` whether the caller may see what
    goes on inside.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or refuse it with 401 or 403."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            self._admit(scope)
        except OmniError as error:
            headers = CHALLENGE if error.status == Unauthorized.status else {}
            await send_error(error, scope, receive, send, headers)
        else:
            await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        state, access = scope.setdefault("state", {}), self._access
        headers = Headers(scope=scope)
        require_host(headers, access.hosts)
        if needs_no_preflight(scope, headers):
            require_origin(headers, access.origins)
        key = take_key(scope)
        admin = access.admin_keys.match(key) if key else None
        tenant = access.keys.match(key) if key else None
        state["tenant"] = tenant or admin
        state["owner"] = access.keys.mark(key) or access.admin_keys.mark(key) if key else None
        if trace := current_trace():
            trace.tenant, trace.owner = state["tenant"], state["owner"]
        state["admin"] = admin is not None
        state["trusted"] = not access.keys or state["tenant"] is not None
        if is_open(scope["path"]):
            return
        if is_admin(scope["path"]):
            _require_admin(admin, access)
        elif not state["trusted"]:
            raise Unauthorized("a key is needed: 'Authorization: Bearer KEY'")


def _require_admin(admin: str | None, access: Access) -> None:
    if not access.admin_keys:
        raise Forbidden("this server was started without --admin-api-key")
    if admin is None:
        raise Unauthorized("the key of an administrator is needed")


def take_key(scope: Scope) -> str | None:
    """The key that a connection presents, or None.

    One among a WebSocket's subprotocols is taken out of them: it must not be chosen, and sent back.
    """
    scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
    found = key.strip() if scheme.lower() == "bearer" and key.strip() else None
    offered = scope.get("subprotocols", [])
    for name in offered:
        if name.startswith(SUBPROTOCOL):
            found = found or name.removeprefix(SUBPROTOCOL)
    if offered:
        scope["subprotocols"] = [name for name in offered if not name.startswith(SUBPROTOCOL)]
    return found


def needs_no_preflight(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser may have sent this without asking for permission first.

    Browsers ask ahead, by a preflight request, before a page sends JSON to another site. They do
    not for a WebSocket, nor for a body that is a form, plain text or of no type. A server on
    loopback that asks for no key would do what any web page in its user's browser tells it to.
    """
    if scope["type"] == "websocket":
        return True
    return scope["method"] not in READING and not is_json_type(get_media_type(headers))


def require_origin(headers: Headers, origins: tuple[str, ...]) -> None:
    """Refuse what a page of another site sends, unless it is one of `origins`.

    Raises `Forbidden`. Programs send no origin and are let through.
    """
    origin = headers.get("origin")
    if origin is None or "*" in origins or origin in origins:
        return
    if urlsplit(origin).netloc != headers.get("host"):
        raise Forbidden(f"pages of {origin[:100]} may not connect; see --cors-origin")
