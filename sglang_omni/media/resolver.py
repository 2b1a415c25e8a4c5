"""Resolve host names with the system's resolver, without blocking other requests.

`getaddrinfo` uses the hosts file, search domains and other system settings, but it blocks a thread,
for half a minute if the name's servers do not answer. So it has its own threads here, and each
tenant has a share of them. A thread counts until it returns, even if its caller stops waiting.
"""

import asyncio
import socket
import threading

from sglang_omni.queueing.policy import Capacity
from sglang_omni.queueing.queue import AdmissionQueue, QueueRules

# How many threads resolve names at once, in total and per tenant. They only wait.
MAX_THREADS, MAX_THREADS_PER_TENANT = 64, 16
# Callers have their own, shorter deadlines.
QUEUE_RULES = QueueRules(max_length=512, max_wait_s=60.0)


class Resolver:
    """Resolve host names. Owned by the event loop."""

    def __init__(self) -> None:
        capacity = Capacity(MAX_THREADS, per_tenant=MAX_THREADS_PER_TENANT)
        self._queue = AdmissionQueue("host name resolver", lambda: capacity, QUEUE_RULES)
        self._lookups: set[asyncio.Task[None]] = set()

    async def resolve(self, host: str, port: int, tenant: str | None) -> list[str]:
        """Return the numeric addresses of a host. Old address notations are normalized.

        The caller sets the deadline. Raises `OSError` or `UnicodeError` for a name that cannot be
        resolved, and `Overloaded` if too many requests wait.
        """
        answer: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        lookup = asyncio.create_task(self._look_up(host, port, tenant, answer))
        self._lookups.add(lookup)
        lookup.add_done_callback(self._lookups.discard)
        return await answer

    async def _look_up(
        self, host: str, port: int, tenant: str | None, answer: asyncio.Future[list[str]]
    ) -> None:
        """Resolve in a thread, and hold its capacity until it returns."""
        try:
            async with self._queue.admit(tenant, "normal"):
                if not answer.done():  # The caller may have stopped waiting.
                    addresses = await _resolve_in_thread(host, port)
                    if not answer.done():
                        answer.set_result(addresses)
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)


def _resolve_in_thread(host: str, port: int) -> asyncio.Future[list[str]]:
    """Resolve in a new daemon thread, which does not delay the exit of the process."""
    loop = asyncio.get_running_loop()
    resolved: asyncio.Future[list[str]] = loop.create_future()

    def finish(addresses: list[str], error: Exception | None) -> None:
        if resolved.done():
            return
        if error is None:
            resolved.set_result(addresses)
        else:
            resolved.set_exception(error)

    def look_up() -> None:
        addresses: list[str] = []
        failure: Exception | None = None
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
        except Exception as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, addresses, failure)

    threading.Thread(target=look_up, name="resolver", daemon=True).start()
    return resolved


RESOLVER = Resolver()
"""The resolver of this process, shared by all requests that fetch media."""
