"""One pass over the samples of a task, under one load."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

import aiohttp

from benchmarks.client.exchange import Answer, send_request
from benchmarks.client.load import KEEP_ALIVE_S, ClientShare, record_lag
from benchmarks.client.target import Target
from benchmarks.evaluation.tasks.task import Sample

OnAnswer = Callable[[Sample, Answer], None]


Send = Callable[[Sample], Coroutine[Any, Any, None]]
"""Sends the request of a sample and waits for the answer."""


@dataclass(frozen=True)
class LoadPlan:
    """The load of a pass.

    `closed`: `amount` clients, each of which sends its next request when the last was answered.
    `open`: `amount` requests per second as a Poisson process, independent of the server.
    """

    kind: Literal["closed", "open"]
    amount: float

    @property
    def name(self) -> str:
        """Return the name in records and reports: "closed/4", "open/2.5"."""
        return f"{self.kind}/{self.amount:g}"

    @classmethod
    def of(cls, name: str) -> "LoadPlan":
        """Parse a name. Raises `ValueError`."""
        kind, _, amount = name.partition("/")
        if kind not in ("closed", "open") or float(amount) <= 0:
            raise ValueError(f"a load is closed/CLIENTS or open/REQUESTS_A_SECOND, not {name!r}")
        return cls("closed" if kind == "closed" else "open", float(amount))


async def warm_up(target: Target, samples: Sequence[Sample], count: int, clients: int) -> None:
    """Send `count` samples, repeated as needed, and discard the answers."""
    wanted = [samples[index % len(samples)] for index in range(count)]
    await run_pass(target, wanted, LoadPlan("closed", clients), 0, lambda *_: None)


async def run_pass(
    target: Target, samples: Sequence[Sample], load: LoadPlan, seed: int, on_answer: OnAnswer
) -> ClientShare:
    """Send every sample once. `on_answer` gets each with its answer as soon as it has ended.

    Returns the load of this client. `seed` is that of the arrivals of an open loop.
    """
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
    lags: list[float] = []
    # Build requests before the clock starts: large media take time, which would delay answers.
    requests = {sample.id: target.call(sample.request) for sample in samples}
    async with aiohttp.ClientSession(connector=connector) as session:
        lag_task = asyncio.create_task(record_lag(lags))
        began_s, cpu_s = time.monotonic(), time.process_time()

        async def ask(sample: Sample) -> None:
            on_answer(sample, await send_request(session, requests[sample.id]))

        if load.kind == "closed":
            await _closed(samples, int(load.amount), ask)
        else:
            await _open(samples, load.amount, Random(seed), ask)
        cpu = (time.process_time() - cpu_s) / max(1e-9, time.monotonic() - began_s)
        lag_task.cancel()
    lags = sorted(lags) or [0.0]
    return ClientShare(cpu, lags[int(0.99 * (len(lags) - 1))], lags[-1])


async def _closed(samples: Sequence[Sample], clients: int, send: Send) -> None:
    remaining = deque(samples)

    async def client() -> None:
        while remaining:
            await send(remaining.popleft())

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())


async def _open(samples: Sequence[Sample], rate: float, gaps: Random, send: Send) -> None:
    due_s = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for sample in samples:
            due_s += gaps.expovariate(rate)
            await asyncio.sleep(due_s - time.monotonic())
            group.create_task(send(sample))
