"""Refusals: counted, and written down for whoever looks after an attack, without any content."""

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
# A flood of refusals must neither fill a disk nor keep the event loop busy.
MAX_LINES_PER_SECOND = 20
# Of these an operator may want to know who was refused; the rest are mistakes in what was asked.
AUDITED_STATUSES = frozenset({401, 403, 408, 413, 414, 429, 431, 503})
# The routes of what was refused before it was a request, and while the rest of it was awaited.
NO_ROUTE, ARRIVING = "none", "arriving"


@dataclass(frozen=True)
class Refusal:
    """One refusal.

    `reason` and `route` are names from the code, never what a client sent. `owner` is the lasting
    digest of its key, `client` its address.
    """

    status: int
    reason: str
    route: str
    request_id: str | None = None
    owner: str | None = None
    client: str | None = None


def is_audited(error: OmniError) -> bool:
    """Return whether a refusal is worth a line of its own."""
    return error.status in AUDITED_STATUSES or error.reason is not None


def reason_of(error: OmniError) -> str:
    """Return what a refusal is called."""
    return error.reason or error.code


def address_of(client: object) -> str | None:
    """Return the address of a peer such as ASGI's `client`; None for what is no address, such as
    what a proxy's header may hold."""
    if not isinstance(client, tuple | list) or not client:
        return None
    try:
        return str(ipaddress.ip_address(client[0]))
    except ValueError:
        return None


def audit_line(refusal: Refusal, now: datetime) -> str:
    """Return a refusal as one line of JSON."""
    entry = {"time": now.isoformat(timespec="milliseconds"), **asdict(refusal)}
    return json.dumps({**entry, "owner": refusal.owner or "none"})


class RefusalLog:
    """Counts refusals and writes a line for each, up to so many a second; how many more there were
    is a line as well. Owned by the event loop."""

    def __init__(
        self, count: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`count` is told the reason of each; `clock` gives seconds."""
        self._count, self._clock = count, clock
        self._second_ends_at = clock()
        self._num_lines = self._num_suppressed = 0

    def add(self, refusal: Refusal) -> None:
        """Count a refusal, and write it down unless there are too many."""
        self._count(refusal.reason)
        now = self._clock()
        if now >= self._second_ends_at:
            self._report_suppressed()
            self._second_ends_at, self._num_lines = now + 1.0, 0
        if self._num_lines < MAX_LINES_PER_SECOND:
            self._num_lines += 1
            AUDIT_LOG.info("%s", audit_line(refusal, datetime.now(UTC)))
            return
        self._num_suppressed += 1
        if self._num_suppressed == 1:
            # A flood may end without another refusal that would tell of it.
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
