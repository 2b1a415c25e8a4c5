"""Loads of requests, and the client processes that send them.

Closed loop: a fixed number of clients, each of which sends its next request when the last was
answered. Open loop: requests arrive as a Poisson process, independent of the server. Listeners:
each plays its answer in real time, and sends its next request when playback has ended.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from typing import Any, Generic, Literal, Protocol, TypeVar

import aiohttp

from sglang_omni.entrypoints.http.transport.uvicorn_server import run

LAG_INTERVAL_S = 0.02
# After a failure a listener waits, so that it does not flood a server that rejects requests.
RETRY_S = 1.0
# Servers commonly close idle connections after 5 s; a request on a closing one would fail.
KEEP_ALIVE_S = 4.0
# All client processes begin at the same time: so long after the last of them has started.
START_S = 0.5
# How long a client process may take to start.
MAX_START_S = 120.0


class LoadRecord(Protocol):
    """The part of a request's record that a load needs."""

    @property
    def number(self) -> int:
        """Return the number of the request within the load."""

    @property
    def began_s(self) -> float:
        """Return the time of the start, in seconds."""

    @property
    def took_s(self) -> float:
        """Return the seconds to the end of the answer."""

    @property
    def left_s(self) -> float:
        """Return the seconds of audio that were still to be played then."""

    @property
    def status(self) -> int | None:
        """Return the HTTP status, None if there was no answer."""

    @property
    def error(self) -> str | None:
        """Return what failed, None if nothing did."""


R = TypeVar("R", bound=LoadRecord, covariant=True)


class Query(Protocol[R]):
    """The requests of a load. It is sent to the client processes."""

    async def send(self, session: aiohttp.ClientSession, number: int) -> R:
        """Send request `number` and read its answer."""


@dataclass(frozen=True)
class Load:
    """The load of all client processes together, for `duration_s` seconds from its start.

    `amount` is the number of clients or listeners, or requests per second in an open loop.
    `requests` limits a closed loop by the number of requests instead of by time. Listeners join one
    after the other over the first `ramp_s` seconds. `first_number` is the number of the first
    request.
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
    """The load of one client process.

    Its share of a core, and the lag of its event loop in seconds.
    """

    cpu: float
    lag_p99_s: float
    lag_max_s: float


@dataclass(frozen=True)
class LoadResult(Generic[R]):
    """The result of a load. Times are on the machine's monotonic clock."""

    began_s: float
    ended_s: float
    records: list[R]
    clients: list[ClientShare]


@dataclass(frozen=True)
class _ProcessLoad:
    """One process's part of a load: number `index` of `of`, from `start_s` on."""

    load: Load
    index: int
    of: int
    start_s: float

    def share(self, total: int) -> int:
        """Return this process's share of `total`."""
        return total // self.of + (self.index < total % self.of)

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of its requests; no two processes have one in common."""
        return count(self.load.first_number + self.index, self.of)


def record_values(record: Any) -> list[Any]:
    """Return the values of a record, in the order of its fields, rounded to 0.1 ms."""
    return [round(x, 4) if isinstance(x, float) else x for x in asdict(record).values()]


def run_load(load: Load, processes: int) -> LoadResult[Any]:
    """Run a load from `processes` client processes. Blocks until the last answer has ended."""
    context = get_context("spawn")
    barrier = context.Barrier(processes, timeout=MAX_START_S)
    with ProcessPoolExecutor(processes, context, _keep_barrier, (barrier,)) as pool:
        # One that starts later than the others would have them send alone.
        list(pool.map(_wait_for_others, range(processes)))
        start_s = time.monotonic() + START_S
        loads = [_ProcessLoad(load, index, processes, start_s) for index in range(processes)]
        results = list(pool.map(_run_process, loads))
    records = sorted(
        (record for records, _ in results for record in records), key=lambda r: r.began_s
    )
    ended_s = max((record.began_s + record.took_s for record in records), default=time.monotonic())
    return LoadResult(start_s, ended_s, records, [share for _, share in results])


_barriers: list[Barrier] = []
"""Of a client process: where it meets the others."""


def _keep_barrier(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _wait_for_others(index: int) -> None:
    del index
    _barriers[-1].wait()


def _run_process(process_load: _ProcessLoad) -> tuple[list[LoadRecord], ClientShare]:
    return run(_run_process_load(process_load))


async def _run_process_load(process_load: _ProcessLoad) -> tuple[list[LoadRecord], ClientShare]:
    runners = {"closed": _run_closed_loop, "open": _run_open_loop, "listeners": _run_listeners}
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.sleep(process_load.start_s - time.monotonic())
        lags: list[float] = []
        lag_task = asyncio.create_task(record_lag(lags))
        began_s, cpu_s = time.monotonic(), time.process_time()
        records: list[LoadRecord] = []
        await runners[process_load.load.kind](process_load, session, records)
        cpu = (time.process_time() - cpu_s) / max(1e-9, time.monotonic() - began_s)
        lag_task.cancel()
    lags = sorted(lags) or [0.0]
    return records, ClientShare(cpu, lags[int(0.99 * (len(lags) - 1))], lags[-1])


async def record_lag(lags: list[float]) -> None:
    """Record how late the event loop wakes up: a busy client sees audio late."""
    while True:
        due = time.monotonic() + LAG_INTERVAL_S
        await asyncio.sleep(LAG_INTERVAL_S)
        lags.append(time.monotonic() - due)


async def _run_closed_loop(
    process_load: _ProcessLoad, session: aiohttp.ClientSession, records: list[LoadRecord]
) -> None:
    load, numbers = process_load.load, process_load.numbers()
    remaining = None if load.requests is None else count(process_load.share(load.requests), -1)
    ends_s = process_load.start_s + load.duration_s

    async def client() -> None:
        while time.monotonic() < ends_s and (remaining is None or next(remaining) > 0):
            records.append(await load.query.send(session, next(numbers)))

    await asyncio.gather(*(client() for _ in range(process_load.share(int(load.amount)))))


async def _run_open_loop(
    process_load: _ProcessLoad, session: aiohttp.ClientSession, records: list[LoadRecord]
) -> None:
    load, numbers = process_load.load, process_load.numbers()
    gaps = random.Random(load.first_number * process_load.of + process_load.index)
    due_s, tasks = process_load.start_s, []

    async def client() -> None:
        records.append(await load.query.send(session, next(numbers)))

    # Poisson processes with equal parts of the rate add up to one with the whole rate.
    while (due_s := due_s + gaps.expovariate(load.amount / process_load.of)) < (
        process_load.start_s + load.duration_s
    ):
        await asyncio.sleep(due_s - time.monotonic())
        tasks.append(asyncio.create_task(client()))
    await asyncio.gather(*tasks)


async def _run_listeners(
    process_load: _ProcessLoad, session: aiohttp.ClientSession, records: list[LoadRecord]
) -> None:
    load, numbers = process_load.load, process_load.numbers()
    ends_s = process_load.start_s + load.duration_s

    async def listener(joins_s: float) -> None:
        await asyncio.sleep(joins_s - time.monotonic())
        while time.monotonic() < ends_s:
            record = await load.query.send(session, next(numbers))
            records.append(record)
            await asyncio.sleep(RETRY_S if record.error else record.left_s)

    listener_numbers = range(process_load.index, int(load.amount), process_load.of)
    join_interval_s = load.ramp_s / max(1.0, load.amount)
    await asyncio.gather(
        *(listener(process_load.start_s + index * join_interval_s) for index in listener_numbers)
    )
