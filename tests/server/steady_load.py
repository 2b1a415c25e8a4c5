"""Short requests at a steady rate, and what became of each."""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

ANSWER_S = 60.0
QUESTION = [{"role": "user", "content": "What is 17 + 25?"}]
# A text to count: larger than one packet, so that its body arrives in pieces.
LONG_TEXT = "The mill stands by the river. " * 1000
REQUESTS: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("GET", "/v1/models", None),
    ("POST", "/v1/chat/completions", {"messages": QUESTION, "max_tokens": 1}),
    ("POST", "/tokenize", {"prompt": LONG_TEXT}),
)


@dataclass(frozen=True)
class Answer:
    """What became of a request: `error` is empty unless it was lost."""

    path: str
    status: int
    server: str
    seconds: float
    error: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether the caller has no good answer."""
        return bool(self.error) or self.status != 200


class SteadyLoad:
    """Requests that begin at fixed times, whether or not earlier ones were answered."""

    def __init__(self, url: str, per_s: float) -> None:
        self.answers: list[Answer] = []
        self._url, self._per_s = url, per_s
        self._is_over = threading.Event()

    @property
    def lost(self) -> list[Answer]:
        """The requests that were lost."""
        return [one for one in self.answers if one.is_lost]

    def count(self, server: str) -> int:
        """Return how many answers came from a server."""
        return sum(one.server == server for one in self.answers)

    def run(self) -> None:
        """Send requests until `stop`, and wait for their answers."""
        asyncio.run(self._run())

    def stop(self) -> None:
        """Send no more requests."""
        self._is_over.set()

    async def _run(self) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        # Many callers, and not one who comes back to the same server.
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        async with (
            httpx.AsyncClient(
                base_url=self._url, timeout=ANSWER_S, limits=limits, cookies=cookies
            ) as client,
            asyncio.TaskGroup() as tasks,
        ):
            next_at = time.monotonic()
            for request in itertools.cycle(REQUESTS):
                if self._is_over.is_set():
                    break
                tasks.create_task(self._ask(client, *request))
                next_at += 1 / self._per_s
                await asyncio.sleep(max(0.0, next_at - time.monotonic()))

    async def _ask(
        self, client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None
    ) -> None:
        started_at = time.monotonic()
        status, server, error = 0, "", ""
        try:
            reply = await client.request(method, path, json=body)
            status, server = reply.status_code, reply.headers.get("x-served-by", "")
            error = "" if status == 200 else reply.text[:300]
        except httpx.HTTPError as failure:
            error = repr(failure)
        self.answers.append(Answer(path, status, server, time.monotonic() - started_at, error))


@contextmanager
def steady_load(url: str, per_s: float) -> Iterator[SteadyLoad]:
    """Send requests while the body runs; all are answered or lost once it has ended."""
    load = SteadyLoad(url, per_s)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        yield load
    finally:
        load.stop()
        thread.join()
