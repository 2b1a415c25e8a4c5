"""The audit log of refused requests, without any content."""

import asyncio
import ipaddress
import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sglang_omni.protocol.errors import OmniError

AUDIT_LOG = logging.getLogger("sglang_omni.audit")
# A flood of refusals must neither fill the disk nor occupy the event loop.
MAX_LINES_PER_SECOND = 20
# For these an operator may want to know the client. Other statuses are mistakes in requests.
AUDITED_STATUSES = frozenset({401, 403, 408, 413, 414, 429, 431, 503})
# Routes of refusals before the request was parsed, and while its body was received.
NO_ROUTE, ARRIVING = "none", "arriving"


@dataclass(frozen=True)
class Refusal:
    """A refused request.

    `reason` and `route` are names from the code, never a client's input. `owner` is the permanent
    digest of the API key, `client` the client's address.
    """

    status: int
    reason: str
    route: str
    request_id: str | None = None
    owner: str | None = None
    client: str | None = None


def is_audited(error: OmniError) -> bool:
    """Return whether a refusal is written to the audit log."""
    return error.status in AUDITED_STATUSES or error.reason is not None


def get_reason(error: OmniError) -> str:
    """Return the name of the reason of a refusal."""
    return error.reason or error.code


def parse_client_address(client: object) -> str | None:
    """Return the IP address of ASGI's `client`, or None if it is not one.

    A proxy's header may contain anything.
    """
    if not isinstance(client, tuple | list) or not client:
        return None
    try:
        return str(ipaddress.ip_address(client[0]))
    except ValueError:
        return None


def format_audit_line(refusal: Refusal, now: datetime) -> str:
    """Return a refusal as one line of JSON."""
    entry = {"time": now.isoformat(timespec="milliseconds"), **asdict(refusal)}
    return json.dumps({**entry, "owner": refusal.owner or "none"})


class RefusalLog:
    """Counts refusals and logs each, up to `MAX_LINES_PER_SECOND`.

    The number of suppressed lines is logged too. Used on the event loop only.
    """

    def __init__(
        self, count: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Call `count` with the reason of each refusal. `clock` returns seconds."""
        self._count, self._clock = count, clock
        self._second_ends_at = clock()
        self._num_lines = self._num_suppressed = 0

    def add(self, refusal: Refusal) -> None:
        """Count a refusal, and log it unless there are too many."""
        self._count(refusal.reason)
        now = self._clock()
        if now >= self._second_ends_at:
            self._report_suppressed()
            self._second_ends_at, self._num_lines = now + 1.0, 0
        if self._num_lines < MAX_LINES_PER_SECOND:
            self._num_lines += 1
            AUDIT_LOG.info("%s", format_audit_line(refusal, datetime.now(UTC)))
            return
        self._num_suppressed += 1
        if self._num_suppressed == 1:
            # The flood may end without a further refusal that would trigger the report.
            asyncio.get_running_loop().call_later(1.0, self._report_suppressed)

    def _report_suppressed(self) -> None:
        if self._num_suppressed:
            entry = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "reason": "suppressed",
                "count": self._num_suppressed,
            }
            AUDIT_LOG.info("%s", json.dumps(entry))
        self._num_suppressed = 0
