"""The first signal asks, the second insists."""

import asyncio
import os
import signal

import pytest

from sglang_omni.entrypoints.cli.shutdown_signals import ShutdownSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_first_signal_asks_and_the_second_insists(number: signal.Signals) -> None:
    with ShutdownSignals(lambda: None) as signals:
        os.kill(os.getpid(), number)
        await asyncio.wait_for(signals.requested.wait(), 1)
        assert not signals.forced.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(signals.forced.wait(), 1)


async def test_work_is_waited_for_until_it_is_done_or_its_time_is_up_or_somebody_insists() -> None:
    with ShutdownSignals(lambda: None) as signals:
        assert await signals.wait_unless_forced(asyncio.sleep(0.01), 5)
        assert not await signals.wait_unless_forced(asyncio.sleep(60), 0.01)
        asyncio.get_running_loop().call_later(0.02, signals.forced.set)
        assert not await signals.wait_unless_forced(asyncio.sleep(60))


async def test_what_the_work_raises_is_raised() -> None:
    async def fail() -> None:
        raise LookupError("nothing there")

    with ShutdownSignals(lambda: None) as signals, pytest.raises(LookupError):
        await signals.wait_unless_forced(fail(), 5)
