"""Names of hosts to addresses, as the system resolves them, without holding up anybody else.

`getaddrinfo` knows the hosts file, search domains and whatever else the system is set up with, but
blocks a thread, for half a minute where a name's servers do not answer. It has threads of its own
here, of which each tenant has a share, and has it until the thread returns: who stops waiting for
an answer does not make room for more.
"""

import asyncio
import socket
import threading

from sglang_omni.admission.policy import Capacity
from sglang_omni.admission.queue import AdmissionQueue, QueueRules

# Threads that look up names at once, and how many of them for one tenant. They only wait.
THREADS, THREADS_PER_TENANT = 64, 16
# Callers have deadlines of their own, which are shorter.
WAITING = QueueRules(max_length=512, max_wait_s=60.0)


class Resolver:
    """Looks up names. Lives on the event loop."""

    def __init__(self) -> None:
        room = Capacity(THREADS, per_tenant=THREADS_PER_TENANT)
        self._room = AdmissionQueue("look-up of host names", lambda: room, WAITING)
        self._lookups: set[asyncio.Task[None]] = set()

    async def resolve(self, host: str, port: int, tenant: str | None) -> list[str]:
        """Numeric addresses of a host. Old notations of an address come out as the usual one.

        Takes its time; the caller sets the deadline. Raises `OSError` or `UnicodeError` for a name
        that cannot be resolved, and `Overloaded` where too many wait.
        """
        answer: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        lookup = asyncio.create_task(self._look_up(host, port, tenant, answer))
        self._lookups.add(lookup)
        lookup.add_done_callback(self._lookups.discard)
        return await answer

    async def _look_up(
        self, host: str, port: int, tenant: str | None, answer: asyncio.Future[list[str]]
    ) -> None:
        """Answer by a thread, and hold its place until it returns."""
        try:
            async with self._room.admit(tenant, "normal"):
                if not answer.done():  # Its caller may have gone while it waited.
                    addresses = await _in_thread(host, port)
                    if not answer.done():
                        answer.set_result(addresses)
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)


def _in_thread(host: str, port: int) -> asyncio.Future[list[str]]:
    """Resolve in a new thread, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str]] = loop.create_future()

    def finish(addresses: list[str], error: Exception | None) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(addresses)
        else:
            found.set_exception(error)

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
    return found


RESOLVER = Resolver()
"""Of the process: its threads are shared by all that fetches media."""
