"""Starts and drains replicas of a pool as its load changes."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from sglang_omni.engines.runtime.load_meter import GetQueueCounters, LoadMeter
from sglang_omni.engines.runtime.pool import EnginePool
from sglang_omni.engines.runtime.process import compute_restart_delay
from sglang_omni.engines.runtime.replica import UP_STATES, Replica
from sglang_omni.engines.runtime.scaling_policy import (
    LoadHistory,
    PoolLoad,
    ScalingDecision,
    ScalingRules,
    decide,
    update_history,
)
from sglang_omni.protocol.errors import StartupError

LOGGER = logging.getLogger(__name__)

POLL_S = 0.5
STOP_S = 10.0
"""How long an engine without requests may take to stop."""


@dataclass
class _FailedStarts:
    """The back-off of a replica that could not start."""

    delay_s: float = 0.0
    retry_at: float = 0.0


class Autoscaler:
    """Applies the scaling policy to one pool, in a task. The pool must have started.

    A replica that is added starts in the background, and one that cannot start is tried again
    after a pause. One that is removed takes no new requests and stops once it has none.
    """

    def __init__(
        self,
        pool: EnginePool,
        rules: ScalingRules,
        get_queue_counters: GetQueueCounters | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        """Take the pool, the rules, and the counters of the queue in front of it, if it has one."""
        self._pool, self._rules, self._poll_s = pool, rules, poll_s
        self._meter = LoadMeter(pool, get_queue_counters)
        self._history = LoadHistory()
        self._failed_starts = {replica: _FailedStarts() for replica in pool.replicas}
        # A replica that starts or stops.
        self._changes: dict[Replica, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look at the load."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; a start is cancelled, and a stop completed. The pool must be stopped afterwards."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
        for replica, change in self._changes.items():
            if replica.phase == "active":
                change.cancel()
        await asyncio.gather(*self._changes.values(), return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            self._poll(time.monotonic())

    def _poll(self, now: float) -> None:
        load = self._meter.measure()
        self._history = update_history(self._history, load, self._rules, now)
        decision = decide(self._history, load, self._rules, now)
        if decision is not None:
            if decision.num_replicas > load.num_up:
                self._grow(decision, load, now)
            else:
                self._shrink(decision, load)
        self._stop_drained()

    def _grow(self, decision: ScalingDecision, load: PoolLoad, now: float) -> None:
        """Add replicas: those that drain are there at once, the others must start."""
        replicas = [replica for replica in self._pool.replicas if replica not in self._changes]
        draining = [replica for replica in replicas if replica.phase == "draining"]
        startable = [
            replica
            for replica in replicas
            if replica.phase == "standby" and now >= self._failed_starts[replica].retry_at
        ]
        num_added = decision.num_replicas - load.num_up - load.num_starting
        for replica in [*draining, *startable][:num_added]:
            LOGGER.info(
                "%s is added to %d running: %s", replica.spec.name, load.num_up, decision.reason
            )
            is_stopped = replica.phase == "standby"
            replica.set_phase("active")
            if is_stopped:
                self._change(replica, self._start(replica))

    def _shrink(self, decision: ScalingDecision, load: PoolLoad) -> None:
        """Remove replicas: those that are down first, then the last ones."""
        removable = [
            replica
            for replica in reversed(self._pool.replicas)
            if replica.is_autoscaled and replica.phase == "active"
        ]
        removable.sort(key=lambda replica: replica.health.state in UP_STATES)
        for replica in removable[: load.num_up + load.num_down - decision.num_replicas]:
            LOGGER.info("%s drains: %s", replica.spec.name, decision.reason)
            replica.set_phase("draining")

    def _stop_drained(self) -> None:
        for replica, num_requests in self._pool.count_requests().items():
            is_idle = num_requests == 0 and replica not in self._changes
            if replica.phase == "draining" and is_idle:
                # Nothing can be submitted to it from now on.
                replica.set_phase("standby")
                self._change(replica, self._stop(replica))

    def _change(self, replica: Replica, change: Coroutine[Any, Any, None]) -> None:
        task = self._changes[replica] = asyncio.create_task(change)
        task.add_done_callback(lambda _: self._changes.pop(replica))

    async def _start(self, replica: Replica) -> None:
        failed = self._failed_starts[replica]
        try:
            await replica.start()
        except StartupError as error:
            replica.set_phase("standby")
            failed.delay_s = compute_restart_delay(failed.delay_s, uptime_s=0.0)
            failed.retry_at = time.monotonic() + failed.delay_s
            LOGGER.warning("%s; it is tried again in %.3g s", error.message, failed.delay_s)
        else:
            failed.delay_s = 0.0
            LOGGER.info("%s is ready", replica.spec.name)

    async def _stop(self, replica: Replica) -> None:
        await replica.stop(STOP_S)
        LOGGER.info("%s is on standby", replica.spec.name)
