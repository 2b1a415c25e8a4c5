"""Reads the metadata of a request that is the same on every route."""

import hashlib
import math
import time
from typing import Protocol

from starlette.requests import HTTPConnection

from sglang_omni.entrypoints.requests.metadata import RequestMetadata
from sglang_omni.protocol.body import MAX_TIMEOUT_S
from sglang_omni.protocol.errors import DeadlineExceeded, InvalidRequest
from sglang_omni.queueing.policy import Priority

TIMEOUT_HEADER = "X-Request-Timeout"


class PrioritizedBody(Protocol):
    """A body with a priority and a timeout."""

    @property
    def priority(self) -> Priority:
        """Return the priority of the request in the queue."""

    @property
    def timeout(self) -> float | None:
        """Return the timeout in seconds, or None for the server's own."""


def build_request_metadata(request: HTTPConnection, body: PrioritizedBody) -> RequestMetadata:
    """Return the metadata of a request.

    The timeout counts from the first byte of an HTTP request, or from now in a WebSocket session.

    Raises:
        InvalidRequest: The timeout header is invalid.
        DeadlineExceeded: The timeout has passed already.
    """
    server_timeout_s = getattr(request.state, "request_timeout", None)
    header_timeout_s = parse_timeout(request.headers.get(TIMEOUT_HEADER))
    timeouts_s = (body.timeout, header_timeout_s, server_timeout_s)
    elapsed_s = _compute_elapsed_s(request)
    remaining_s = [timeout_s - elapsed_s for timeout_s in timeouts_s if timeout_s is not None]
    if min(remaining_s, default=1.0) <= 0:
        raise DeadlineExceeded(f"the deadline passed before the body arrived ({elapsed_s:.1f} s)")
    return RequestMetadata(
        id=request.state.request_id,
        tenant=get_tenant(request),
        priority=body.priority,
        timeout_s=min(remaining_s, default=None),
    )


def _compute_elapsed_s(request: HTTPConnection) -> float:
    if request.scope["type"] == "websocket":
        return 0.0
    now = time.monotonic()
    arrived_at: float = getattr(request.state, "arrived_at", now)
    return now - arrived_at


def get_owner(connection: HTTPConnection) -> str | None:
    """Return the id of the key's owner, which survives restarts and owns stored voices.

    It is None if the server requires no keys; then all callers share their voices.
    """
    owner: str | None = connection.state.owner
    return owner


def get_state_tenant(connection: HTTPConnection) -> str | None:
    """Return the id of the caller that is the same on every server, and after a restart.

    What is stored for later requests belongs to it. It is the owner of the key, or a digest of
    other credentials, if any.
    """
    return get_owner(connection) or _digest_credentials(connection)


def parse_timeout(header: str | None) -> float | None:
    """Return the seconds of a timeout header. Raises `InvalidRequest`, naming the header."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise InvalidRequest(
            f"{TIMEOUT_HEADER}: must be a number of seconds above 0 and at most {MAX_TIMEOUT_S}",
            param=TIMEOUT_HEADER,
        )
    return seconds


def get_tenant(connection: HTTPConnection) -> str | None:
    """Return the id of the caller: the key's owner, or a digest of other credentials, if any."""
    if connection.state.tenant is not None:
        return str(connection.state.tenant)
    return _digest_credentials(connection)


def _digest_credentials(connection: HTTPConnection) -> str | None:
    credentials = connection.headers.get("authorization")
    if not credentials:
        return None
    return hashlib.blake2b(credentials.encode(), digest_size=16).hexdigest()
