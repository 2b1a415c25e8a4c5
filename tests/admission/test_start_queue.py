"""A request waits for an engine on standby, and learns of a start that fails."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from sglang_omni.admission.start_queue import POLL_S, StartQueue
from sglang_omni.protocol.errors import EngineUnavailable


def replica(state: str) -> Any:
    health = SimpleNamespace(state=state, last_error=None, last_error_at=None)
    return SimpleNamespace(health=health, spec=SimpleNamespace(name="image"))


@pytest.mark.parametrize("state", ["ready", "unresponsive", "restarting", "failed", "draining"])
async def test_nobody_waits_for_an_engine_that_runs_or_has_failed(state: str) -> None:
    queue = StartQueue([replica("standby"), replica(state)])
    assert not queue.must_wait
    await queue.wait()


async def test_requests_wait_and_are_counted_until_a_replica_is_ready() -> None:
    image = replica("standby")
    queue = StartQueue([image])
    waits = [asyncio.create_task(queue.wait()) for _ in range(2)]
    await asyncio.sleep(POLL_S / 2)
    assert queue.num_waiting == 2
    image.health.state = "starting"
    await asyncio.sleep(2 * POLL_S)
    assert queue.num_waiting == 2
    image.health.state = "ready"
    await asyncio.gather(*waits)
    assert queue.num_waiting == 0


async def test_a_client_that_leaves_is_not_counted() -> None:
    queue = StartQueue([replica("standby")])
    wait = asyncio.create_task(queue.wait())
    await asyncio.sleep(0)
    wait.cancel()
    await asyncio.wait({wait})
    assert queue.num_waiting == 0


async def test_a_start_that_fails_is_the_error_of_those_who_wait_for_it() -> None:
    image = replica("standby")
    image.health.last_error, image.health.last_error_at = "an earlier one", time.time() - 1
    wait = asyncio.create_task(StartQueue([image]).wait())
    await asyncio.sleep(2 * POLL_S)
    assert not wait.done()
    image.health.last_error, image.health.last_error_at = "no memory", time.time()
    with pytest.raises(EngineUnavailable, match="image cannot start: no memory"):
        await wait
