"""On what terms a request is served: for whom, how soon, for how long. The same on every route."""

import hashlib
import math
import time
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import HTTPConnection

from sglang_omni.pipeline.request import Priority
from sglang_omni.protocol.body import MAX_TIMEOUT_S
from sglang_omni.protocol.errors import DeadlineExceeded, InvalidRequest

TIMEOUT_HEADER = "X-Request-Timeout"


@dataclass(frozen=True)
class RequestMetadata:
    """The id of a request, and the fields that `ChatRequest` and `SpeechRequest` share."""

    id: str
    tenant: str | None = None
    priority: Priority = "normal"
    timeout_s: float | None = None


class PrioritizedBody(Protocol):
    """A body that says how soon and for how long."""

    @property
    def priority(self) -> Priority:
        """Whose turn comes first."""

    @property
    def timeout(self) -> float | None:
        """Seconds, None for as long as the server allows."""


def build_request_metadata(request: HTTPConnection, body: PrioritizedBody) -> RequestMetadata:
    """What a request and its body say; time counts from the request's first byte, within a session
    over a WebSocket from now.

    Raises `InvalidRequest` for an unusable header, `DeadlineExceeded` if the time is up.
    """
    server_limit = getattr(request.state, "request_timeout", None)
    asked = (body.timeout, parse_timeout(request.headers.get(TIMEOUT_HEADER)), server_limit)
    elapsed = _seconds_since_arrival(request)
    limits = [seconds - elapsed for seconds in asked if seconds is not None]
    if min(limits, default=1.0) <= 0:
        raise DeadlineExceeded(f"the time was up when the request had arrived, in {elapsed:.1f} s")
    return RequestMetadata(
        id=request.state.request_id,
        tenant=get_tenant(request),
        priority=body.priority,
        timeout_s=min(limits, default=None),
    )


def _seconds_since_arrival(request: HTTPConnection) -> float:
    if request.scope["type"] == "websocket":
        return 0.0
    now = time.monotonic()
    arrived_at: float = getattr(request.state, "arrived_at", now)
    return now - arrived_at


def get_owner(asking: HTTPConnection) -> str | None:
    """Whose stored voices are meant: those of the key, across restarts; None where no keys are
    asked for, and everybody shares everything."""
    owner: str | None = asking.state.owner
    return owner


def parse_timeout(header: str | None) -> float | None:
    """Seconds, from the header that proxies set. Raises `InvalidRequest`, naming it."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise InvalidRequest(
            f"{TIMEOUT_HEADER}: must be seconds, more than 0 and at most {MAX_TIMEOUT_S}",
            param=TIMEOUT_HEADER,
        )
    return seconds


def get_tenant(asking: HTTPConnection) -> str | None:
    """Who asks, by a request or a WebSocket: the owner of the key, or where no keys are asked for,
    a digest of what credentials there are, None without any."""
    if asking.state.tenant is not None:
        return str(asking.state.tenant)
    credentials = asking.headers.get("authorization")
    if not credentials:
        return None
    return hashlib.blake2b(credentials.encode(), digest_size=16).hexdigest()
