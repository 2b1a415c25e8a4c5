"""Authentication by API keys, and checks of a request's Host and Origin headers."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sglang_omni.entrypoints.api_keys import Keys
from sglang_omni.entrypoints.http.middleware.hosts import require_host
from sglang_omni.entrypoints.http.middleware.send_error import send_error
from sglang_omni.entrypoints.http.paths import is_admin_path, is_public_path
from sglang_omni.entrypoints.http.request_body.json_route import get_media_type, is_json_type
from sglang_omni.observability.trace import current_trace
from sglang_omni.protocol.errors import Forbidden, OmniError, Unauthorized

# A browser cannot set headers for a WebSocket, so it sends its key as a subprotocol.
KEY_SUBPROTOCOL_PREFIX = "openai-insecure-api-key."
# Methods that change nothing. Without CORS, a page of another site cannot read their responses.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CHALLENGE_HEADERS = {"WWW-Authenticate": "Bearer"}


@dataclass
class Access:
    """Access rules of the server. The keys may be replaced while the server runs.

    Attributes:
        keys: Keys for inference. If there are none, everybody may use it.
        admin_keys: Keys of administrators. If there are none, nobody may use admin routes.
        origins: Origins whose pages may read responses and open WebSockets, in addition to pages
            of this server. "*" allows all.
        hosts: Allowed values of the Host header. If empty, or with "*", all are allowed.
    """

    keys: Keys = field(default_factory=Keys)
    admin_keys: Keys = field(default_factory=Keys)
    origins: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()

    def derive_owner_id(self, key: str) -> str | None:
        """Return an id of the key's owner that survives restarts, or None if unknown."""
        return self.keys.derive_owner_id(key) or self.admin_keys.derive_owner_id(key)


class AuthMiddleware:
    """ASGI middleware that rejects requests that `access` does not allow.

    It sets in `scope["state"]`: `tenant`, the id of the key's owner in this process; `owner`, the
    id that survives restarts; `is_admin`, whether the key is an administrator's; `is_trusted`,
    whether the caller may see the state of the engines.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or reject it with 401 or 403."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            self._authenticate(scope)
        except OmniError as error:
            headers = CHALLENGE_HEADERS if error.status == Unauthorized.status else {}
            await send_error(error, scope, receive, send, headers)
        else:
            await self._app(scope, receive, send)

    def _authenticate(self, scope: Scope) -> None:
        state, access = scope.setdefault("state", {}), self._access
        headers = Headers(scope=scope)
        require_host(headers, access.hosts)
        if skips_preflight(scope, headers):
            require_origin(headers, access.origins)
        key = extract_key(scope)
        admin = access.admin_keys.match(key) if key else None
        tenant = access.keys.match(key) if key else None
        state["tenant"] = tenant or admin
        state["owner"] = access.derive_owner_id(key) if key else None
        if trace := current_trace():
            trace.tenant, trace.owner = state["tenant"], state["owner"]
        state["is_admin"] = admin is not None
        state["is_trusted"] = not access.keys or state["tenant"] is not None
        if is_public_path(scope["path"]):
            return
        if is_admin_path(scope["path"]):
            _require_admin(admin, access)
        elif not state["is_trusted"]:
            raise Unauthorized("a key is needed: 'Authorization: Bearer KEY'")


def _require_admin(admin: str | None, access: Access) -> None:
    if not access.admin_keys:
        raise Forbidden("this server was started without --admin-api-key")
    if admin is None:
        raise Unauthorized("an administrator's key is needed")


def extract_key(scope: Scope) -> str | None:
    """Return the key that a connection presents, or None.

    A key among a WebSocket's subprotocols is removed from `scope`, so that it is not selected and
    sent back.
    """
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    key = token.strip() if scheme.lower() == "bearer" and token.strip() else None
    subprotocols = scope.get("subprotocols", [])
    for name in subprotocols:
        if name.startswith(KEY_SUBPROTOCOL_PREFIX):
            key = key or name.removeprefix(KEY_SUBPROTOCOL_PREFIX)
    if subprotocols:
        scope["subprotocols"] = [
            name for name in subprotocols if not name.startswith(KEY_SUBPROTOCOL_PREFIX)
        ]
    return key


def skips_preflight(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser may have sent this without a CORS preflight request.

    Browsers send a preflight before a page sends JSON to another site. They send none for a
    WebSocket, or for a body that is a form, plain text or of no type. Without this check, any page
    in the user's browser could use a server on loopback that needs no key.
    """
    if scope["type"] == "websocket":
        return True
    return scope["method"] not in SAFE_METHODS and not is_json_type(get_media_type(headers))


def require_origin(headers: Headers, origins: tuple[str, ...]) -> None:
    """Reject a request of another site's page, unless its origin is one of `origins`.

    Raises `Forbidden`. Clients other than browsers send no Origin header and pass.
    """
    origin = headers.get("origin")
    if origin is None or "*" in origins or origin in origins:
        return
    if urlsplit(origin).netloc != headers.get("host"):
        raise Forbidden(f"pages of {origin[:100]} may not connect; see --cors-origin")
