"""Loads of requests, and the client processes that make them.

Closed loop: a fixed number of clients, each asking again as soon as it was answered. Open loop:
requests come as a Poisson process, whatever the server does. Listeners: each plays its answer in
real time and asks again when the playback has ended.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from multiprocessing import get_context
from typing import Any, Generic, Literal, Protocol, TypeVar

import aiohttp

from sglang_omni.entrypoints.http.transport.uvicorn_server import run

LAG_INTERVAL_S = 0.02
# After a failure a listener waits, or a refusing server would be asked without a pause.
RETRY_S = 1.0
# Servers commonly close an idle connection after 5 s; a request that met that would fail.
KEEP_ALIVE_S = 4.0
# Processes need a moment to start; they all begin at the same instant.
START_S = 2.0


class Record(Protocol):
    """How one request went, as far as a load must know it."""

    @property
    def number(self) -> int: ...
    @property
    def began_s(self) -> float: ...
    @property
    def took_s(self) -> float: ...
    @property
    def left_s(self) -> float: ...
    @property
    def status(self) -> int | None: ...
    @property
    def error(self) -> str | None: ...


R = TypeVar("R", bound=Record, covariant=True)


class Query(Protocol[R]):
    """What every request of a load asks. It travels to the client processes."""

    async def ask(self, session: aiohttp.ClientSession, number: int) -> R:
        """Make request `number`, and see it to its end."""


@dataclass(frozen=True)
class Load:
    """What all processes do together, for `duration_s` seconds from its start.

    `amount` is the number of clients or listeners, or requests per second in an open loop;
    `requests` bounds a closed loop by their number instead of by time. Listeners join one after
    the other over the first `ramp_s` seconds. `first_number` is that of the first request.
    """

    kind: Literal["closed", "open", "listeners"]
    query: Query[Any]
    amount: float
    duration_s: float
    requests: int | None = None
    ramp_s: float = 0.0
    first_number: int = 0


@dataclass(frozen=True)
class ClientShare:
    """How one client process fared: its share of a core, and how late its loop ran (seconds)."""

    cpu: float
    lag_p99_s: float
    lag_max_s: float


@dataclass(frozen=True)
class Observed(Generic[R]):
    """What came of a load. Times are on the machine's monotonic clock."""

    began_s: float
    ended_s: float
    records: list[R]
    clients: list[ClientShare]


@dataclass(frozen=True)
class _Part:
    """One process's part of a load: number `index` of `of`, from `start_s` on."""

    load: Load
    index: int
    of: int
    start_s: float

    def share(self, whole: int) -> int:
        """This process's part of `whole` things."""
        return whole // self.of + (self.index < whole % self.of)

    def numbers(self) -> Iterator[int]:
        """Numbers of its requests; no two processes have one in common."""
        return count(self.load.first_number + self.index, self.of)


def row_of(record: Any) -> list[Any]:
    """The values of a record, a dataclass, in the order of its fields, rounded to 0.1 ms."""
    return [round(x, 4) if isinstance(x, float) else x for x in asdict(record).values()]


def run_load(load: Load, processes: int) -> Observed[Any]:
    """Make a load from `processes` client processes; blocks until the last answer is in."""
    start_s = time.monotonic() + START_S
    parts = [_Part(load, index, processes, start_s) for index in range(processes)]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        results = list(pool.map(_run_part, parts))
    records = sorted((one for records, _ in results for one in records), key=lambda r: r.began_s)
    ended_s = max((one.began_s + one.took_s for one in records), default=time.monotonic())
    return Observed(start_s, ended_s, records, [share for _, share in results])


def _run_part(part: _Part) -> tuple[list[Record], ClientShare]:
    return run(_make_part(part))


async def _make_part(part: _Part) -> tuple[list[Record], ClientShare]:
    makers = {"closed": _closed, "open": _open, "listeners": _listeners}
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.sleep(part.start_s - time.monotonic())
        lags: list[float] = []
        watching = asyncio.create_task(watch_lag(lags))
        began_s, cpu_s = time.monotonic(), time.process_time()
        records: list[Record] = []
        await makers[part.load.kind](part, session, records)
        cpu = (time.process_time() - cpu_s) / max(1e-9, time.monotonic() - began_s)
        watching.cancel()
    lags = sorted(lags) or [0.0]
    return records, ClientShare(cpu, lags[int(0.99 * (len(lags) - 1))], lags[-1])


async def watch_lag(lags: list[float]) -> None:
    """Note how much later than asked the loop comes back: a busy client sees late audio."""
    while True:
        due = time.monotonic() + LAG_INTERVAL_S
        await asyncio.sleep(LAG_INTERVAL_S)
        lags.append(time.monotonic() - due)


async def _closed(part: _Part, session: aiohttp.ClientSession, records: list[Record]) -> None:
    load, numbers = part.load, part.numbers()
    left = None if load.requests is None else count(part.share(load.requests), -1)
    ends_s = part.start_s + load.duration_s

    async def client() -> None:
        while time.monotonic() < ends_s and (left is None or next(left) > 0):
            records.append(await load.query.ask(session, next(numbers)))

    await asyncio.gather(*(client() for _ in range(part.share(int(load.amount)))))


async def _open(part: _Part, session: aiohttp.ClientSession, records: list[Record]) -> None:
    load, numbers = part.load, part.numbers()
    gaps = random.Random(load.first_number * part.of + part.index)
    due_s, asked = part.start_s, []

    async def client() -> None:
        records.append(await load.query.ask(session, next(numbers)))

    # Poisson processes of equal parts of the rate add up to one of the whole rate.
    while (due_s := due_s + gaps.expovariate(load.amount / part.of)) < (
        part.start_s + load.duration_s
    ):
        await asyncio.sleep(due_s - time.monotonic())
        asked.append(asyncio.create_task(client()))
    await asyncio.gather(*asked)


async def _listeners(part: _Part, session: aiohttp.ClientSession, records: list[Record]) -> None:
    load, numbers = part.load, part.numbers()
    ends_s = part.start_s + load.duration_s

    async def listener(joins_s: float) -> None:
        await asyncio.sleep(joins_s - time.monotonic())
        while time.monotonic() < ends_s:
            record = await load.query.ask(session, next(numbers))
            records.append(record)
            await asyncio.sleep(RETRY_S if record.error else record.left_s)

    everybody = range(part.index, int(load.amount), part.of)
    pace_s = load.ramp_s / max(1.0, load.amount)
    await asyncio.gather(*(listener(part.start_s + index * pace_s) for index in everybody))
