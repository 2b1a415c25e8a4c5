"""Invariants of a supervised engine process, for both kinds of worker."""

import asyncio
import os
import re
import signal
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil
import pytest

from sglang_omni.engines.runtime.process import (
    EngineProcess,
    compute_restart_delay,
    compute_restart_pause,
)
from sglang_omni.protocol.errors import (
    EngineFailed,
    EngineUnavailable,
    InvalidRequest,
    Overloaded,
    StartupError,
)
from tests.engines.runtime.processes import alive, eventually, group, running, sockets, toy_spec
from tests.engines.runtime.toy_workers import Count, Number, ToySettings

ENDLESS = 10**9
both_kinds = pytest.mark.parametrize("kind", ["step", "stream"])


async def collect(engine: EngineProcess, request: Count) -> list[int]:
    """Return the values of a whole request."""
    return [output.value async for output in engine.submit(request)]


async def take(outputs: Any, count: int) -> list[Number]:
    """Return the next outputs of a request that goes on."""
    return [await anext(outputs) for _ in range(count)]


def counter(engine: EngineProcess, name: str) -> float:
    """Return a counter as of the last beat, 0 before the first."""
    return engine.health.counters.get(name, 0)


async def failing(kind: str, fault: str, **options: Any) -> str:
    """Return the message of the `StartupError` that a fault at the start ends in."""
    engine = EngineProcess(toy_spec(kind, ToySettings(fault=fault), **options))
    with pytest.raises(StartupError) as caught:
        await engine.start()
    health = engine.health
    assert (health.state, health.error, engine.pid) == ("failed", caught.value.message, None)
    with pytest.raises(EngineUnavailable, match="toy is failed"):
        engine.submit(Count(1))
    return caught.value.message


@both_kinds
async def test_outputs_stream_in_order_beyond_the_window(kind: str) -> None:
    async with running(kind, window=4) as engine:
        assert await collect(engine, Count(50)) == list(range(50))
        assert engine.in_flight == 0


@both_kinds
async def test_ready_engine_reports_its_info_and_counters(kind: str) -> None:
    async with running(kind) as engine:
        assert engine.health.state == "ready"
        assert engine.health.info.pid == engine.pid
        assert engine.health.progress == "loading toys"
        await collect(engine, Count(3))
        await eventually(lambda: counter(engine, "outputs") == 3, within_s=2)


@both_kinds
async def test_closing_the_iterator_cancels_in_the_worker(kind: str) -> None:
    async with running(kind) as engine:
        async with aclosing(engine.submit(Count(ENDLESS))) as outputs:
            await take(outputs, 3)
        assert engine.in_flight == 0
        await eventually(lambda: counter(engine, "cancelled") == 1, within_s=2)
        assert counter(engine, "held") == 0
        assert await collect(engine, Count(2)) == [0, 1]


@both_kinds
async def test_cancelling_the_waiting_task_cancels_in_the_worker(kind: str) -> None:
    async with running(kind) as engine:
        task = asyncio.create_task(collect(engine, Count(ENDLESS)))
        await eventually(lambda: counter(engine, "held") == 1, within_s=2)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert engine.in_flight == 0
        await eventually(lambda: counter(engine, "held") == 0, within_s=2)


@both_kinds
async def test_cancelling_a_stalled_request_frees_it(kind: str) -> None:
    async with running(kind, window=2) as engine:
        async with aclosing(engine.submit(Count(ENDLESS))) as outputs:
            await take(outputs, 1)
            await eventually(lambda: counter(engine, "outputs") >= 2, within_s=2)
        await eventually(lambda: counter(engine, "cancelled") == 1, within_s=2)


@both_kinds
async def test_a_stalled_consumer_is_waited_for_by_nobody(kind: str) -> None:
    async with running(kind, window=4) as engine, aclosing(engine.submit(Count(30))) as slow:
        await take(slow, 1)
        assert await collect(engine, Count(300)) == list(range(300))
        await eventually(lambda: counter(engine, "outputs") > 300, within_s=2)
        # One window waits, and one output was taken without a word to the engine yet.
        assert counter(engine, "outputs") <= 300 + 4 + 1
        assert [output.value async for output in slow] == list(range(1, 30))


@both_kinds
async def test_an_engine_whose_every_client_is_behind_rests(kind: str) -> None:
    async with running(kind, window=4) as engine, aclosing(engine.submit(Count(ENDLESS))) as slow:
        await take(slow, 1)
        await eventually(lambda: counter(engine, "outputs") == 4, within_s=2)
        before = dict(engine.health.counters)
        await asyncio.sleep(0.8)
        assert engine.health.counters == before
        await take(slow, 8)


async def test_an_engine_rests_when_those_in_its_slots_are_behind_and_others_wait() -> None:
    settings = ToySettings(slots=1)
    async with (
        running("step", settings, window=4) as engine,
        aclosing(engine.submit(Count(20))) as slow,
    ):
        await take(slow, 1)
        waiting = asyncio.create_task(collect(engine, Count(3)))
        await eventually(lambda: counter(engine, "held") == 2, within_s=2)
        await eventually(lambda: counter(engine, "outputs") == 4, within_s=2)
        before = dict(engine.health.counters)
        await asyncio.sleep(0.8)
        assert engine.health.counters == before
        assert [output.value async for output in slow] == list(range(1, 20))
        assert await waiting == [0, 1, 2]


@both_kinds
async def test_two_hundred_concurrent_requests_all_finish(kind: str) -> None:
    async with running(kind, window=8) as engine:
        answers = await asyncio.gather(*(collect(engine, Count(5 + i % 20)) for i in range(200)))
        assert answers == [list(range(5 + i % 20)) for i in range(200)]
        assert engine.in_flight == 0
        # A beat may fall between the last arrival and the last output.
        await eventually(
            lambda: (counter(engine, "arrived"), counter(engine, "held")) == (200, 0), within_s=2
        )


async def test_requests_share_steps() -> None:
    async with running("step") as engine:
        await asyncio.gather(*(collect(engine, Count(100)) for _ in range(8)))
        await eventually(lambda: counter(engine, "outputs") == 800, within_s=2)
        assert counter(engine, "steps") < 200


async def test_more_requests_than_accepted_are_refused() -> None:
    async with running("step", max_in_flight=1) as engine:
        async with aclosing(engine.submit(Count(ENDLESS))) as outputs:
            await take(outputs, 1)
            with pytest.raises(Overloaded):
                await collect(engine, Count(1))
        assert await collect(engine, Count(1)) == [0]


@both_kinds
async def test_an_error_of_one_request_is_its_own(kind: str) -> None:
    async with running(kind) as engine, aclosing(engine.submit(Count(ENDLESS))) as other:
        await take(other, 1)
        with pytest.raises(InvalidRequest, match="no such toy") as refused:
            await collect(engine, Count(1, fault="refuse"))
        assert refused.value.param == "toy"
        with pytest.raises(EngineFailed, match="KeyError: 'a foreign error'"):
            await collect(engine, Count(1, fault="error"))
        await take(other, 3)
        assert engine.in_flight == 1
        assert engine.health.restarts == 0


async def test_a_stream_without_a_last_output_is_an_error() -> None:
    async with running("stream") as engine:
        with pytest.raises(EngineFailed, match="without a last output"):
            await collect(engine, Count(2, fault="endless"))


@both_kinds
async def test_sigkill_fails_the_requests_in_flight_and_the_engine_comes_back(kind: str) -> None:
    async with running(kind, ToySettings(grandchild=True)) as engine:
        first = engine.health.info
        async with aclosing(engine.submit(Count(ENDLESS))) as outputs:
            await take(outputs, 1)
            killed_at = time.monotonic()
            os.kill(first.pid, signal.SIGKILL)
            with pytest.raises(EngineFailed, match="toy died"):
                await take(outputs, ENDLESS)
            assert time.monotonic() - killed_at < 1.0
        with pytest.raises(EngineUnavailable):
            await collect(engine, Count(1))
        await eventually(lambda: engine.health.state == "restarting", within_s=1)
        assert engine.in_flight == 0
        await eventually(lambda: engine.health.state == "ready", within_s=10)
        assert await collect(engine, Count(3)) == [0, 1, 2]
        assert engine.health.restarts == 1
        assert (engine.health.error, engine.health.last_error) == (None, "was killed by SIGKILL")
        assert not alive(first.grandchild)
        assert group(first.pid) == []


async def test_a_process_that_an_engine_forks_does_not_hold_its_connection() -> None:
    async with running("stream", ToySettings(grandchild=True)) as engine:
        info = engine.health.info
        descriptor = psutil.Process(info.pid).cmdline()[-2]
        connection = os.readlink(f"/proc/{info.pid}/fd/{descriptor}")
        assert connection in sockets(info.pid)
        assert connection not in sockets(info.grandchild)


@both_kinds
async def test_a_worker_that_breaks_fails_every_request_and_is_restarted(kind: str) -> None:
    async with running(kind) as engine, aclosing(engine.submit(Count(ENDLESS))) as other:
        await take(other, 1)
        said = "the step failed: RuntimeError: the toy broke" if kind == "step" else "toy died"
        with pytest.raises(EngineFailed, match=said):
            await collect(engine, Count(ENDLESS, fault="crash"))
        with pytest.raises(EngineFailed, match=said):
            await take(other, ENDLESS)
        await eventually(lambda: engine.health.restarts == 1, within_s=5)
        await eventually(lambda: engine.health.state == "ready", within_s=10)
        assert (engine.health.error, engine.health.last_error) == (None, "exited with 1")
        assert await collect(engine, Count(1)) == [0]


async def test_an_engine_out_of_memory_fails_its_requests_with_a_500_and_comes_back() -> None:
    async with running("step") as engine:
        with pytest.raises(EngineFailed, match="MemoryError: no room for a toy") as failed:
            await collect(engine, Count(1, fault="memory"))
        assert failed.value.status == 500
        await eventually(lambda: engine.health.restarts == 1, within_s=5)
        await eventually(lambda: engine.health.state == "ready", within_s=10)


async def test_outputs_that_cannot_be_sent_end_the_engine_and_fail_its_requests() -> None:
    async with running("step") as engine, aclosing(engine.submit(Count(ENDLESS))) as other:
        await take(other, 1)
        with pytest.raises(EngineFailed, match="toy died"):
            await collect(engine, Count(5, fault="unpicklable"))
        with pytest.raises(EngineFailed, match="toy died"):
            await take(other, ENDLESS)
        await eventually(lambda: engine.health.restarts == 1, within_s=5)
        await eventually(lambda: engine.health.state == "ready", within_s=10)
        assert await collect(engine, Count(1)) == [0]


async def test_an_output_of_a_stream_that_cannot_be_sent_fails_that_request_alone() -> None:
    async with running("stream") as engine, aclosing(engine.submit(Count(ENDLESS))) as other:
        await take(other, 1)
        with pytest.raises(EngineFailed, match="pickle"):
            await collect(engine, Count(5, fault="unpicklable"))
        await take(other, 3)
        assert engine.health.restarts == 0


@both_kinds
async def test_a_hung_step_is_killed_and_the_engine_comes_back(kind: str) -> None:
    async with running(kind, step_deadline_s=0.5) as engine:
        with pytest.raises(EngineFailed, match="toy died"):
            await asyncio.wait_for(collect(engine, Count(1, fault="hang")), timeout=4)
        await eventually(lambda: engine.health.state == "ready", within_s=10)
        assert "hung in a step" in (engine.health.last_error or "")
        assert engine.health.error is None
        assert await collect(engine, Count(1)) == [0]


async def test_an_engine_that_falls_silent_is_unready_first_and_then_killed() -> None:
    async with running(
        "step", step_deadline_s=60.0, silence_deadline_s=2.0, unready_after_s=0.8
    ) as engine:
        os.kill(engine.health.info.pid, signal.SIGSTOP)
        await eventually(lambda: engine.health.state == "unresponsive", within_s=2)
        await eventually(lambda: engine.health.state == "restarting", within_s=4)
        await eventually(lambda: engine.health.state == "ready", within_s=10)
        assert "no heartbeat" in (engine.health.last_error or "")
        assert engine.health.error is None


async def test_an_engine_that_is_heard_again_is_ready_again() -> None:
    async with running("stream", unready_after_s=0.6) as engine:
        os.kill(engine.health.info.pid, signal.SIGSTOP)
        await eventually(lambda: engine.health.state == "unresponsive", within_s=2)
        os.kill(engine.health.info.pid, signal.SIGCONT)
        await eventually(lambda: engine.health.state == "ready", within_s=2)
        assert engine.health.restarts == 0


async def test_a_server_that_was_held_up_does_not_take_its_engine_for_dead() -> None:
    async with running("step", silence_deadline_s=1.0) as engine:
        time.sleep(1.6)
        await asyncio.sleep(0.6)
        assert (engine.health.state, engine.health.restarts) == ("ready", 0)


@both_kinds
async def test_a_failing_factory_is_reported_with_its_reason(kind: str) -> None:
    message = await failing(kind, "raise")
    assert message.startswith("toy could not start: RuntimeError: no toys")
    assert group(int(message.rpartition("=")[2])) == []


async def test_an_error_of_ours_at_the_start_speaks_for_itself() -> None:
    message = await failing("step", "checkpoint")
    assert message == "toy could not start: toys.safetensors is missing"


async def test_a_death_at_the_start_is_reported_with_the_last_words() -> None:
    message = await failing("step", "exit")
    assert message == "toy exited with 3 while starting\nthe last words of the toy"


async def test_the_start_has_a_deadline_and_leaves_no_process() -> None:
    message = await failing("step", "sleep", start_deadline_s=1.5)
    assert message.startswith("toy was not ready within 1.5 s (last progress: loading toys)")
    [pid] = re.findall(r"pid=(\d+)", message)
    assert group(int(pid)) == []


async def test_no_phase_of_the_start_takes_longer_than_a_phase_may() -> None:
    message = await failing("step", "sleep", phase_deadline_s=1.5)
    assert message.startswith("toy spent more than 1.5 s on 'loading toys'")


async def test_an_engine_that_is_stopped_at_its_start_ends_the_start() -> None:
    message = await failing("step", "stop", start_silence_s=1.5)
    assert message.startswith("toy sent no heartbeat for 1.5 s (last progress: loading toys)")


async def test_shared_memory_of_a_killed_engine_is_given_back() -> None:
    async with running("step", ToySettings(shared=True)) as engine:
        name = Path("/dev/shm") / engine.health.info.shared
        assert name.exists()
        os.kill(engine.health.info.pid, signal.SIGKILL)
        await eventually(lambda: not name.exists(), within_s=3)


async def test_an_unknown_factory_is_reported() -> None:
    spec = toy_spec("nonsense")
    with pytest.raises(StartupError, match="has no attribute 'make_nonsense'"):
        await EngineProcess(spec).start()


async def test_cancelling_the_start_leaves_no_process() -> None:
    engine = EngineProcess(toy_spec("step", ToySettings(fault="sleep")))
    starting = asyncio.create_task(engine.start())
    await eventually(lambda: engine.health.progress == "loading toys", within_s=5)
    pid = engine.pid
    assert pid is not None
    assert engine.health.state == "starting"
    starting.cancel()
    await asyncio.wait({starting})
    assert group(pid) == []


async def test_stopping_during_the_start_ends_it() -> None:
    engine = EngineProcess(toy_spec("step", ToySettings(fault="sleep")))
    starting = asyncio.create_task(engine.start())
    await eventually(lambda: engine.health.progress == "loading toys", within_s=5)
    pid = engine.pid
    await engine.stop()
    with pytest.raises(StartupError):
        await starting
    assert engine.health.state == "stopped"
    assert pid is not None
    assert group(pid) == []


@both_kinds
async def test_stop_closes_the_worker_and_leaves_no_process(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with running(kind, ToySettings(grandchild=True)) as engine:
        info = engine.health.info
        outputs = engine.submit(Count(ENDLESS))
        await take(outputs, 1)
        await engine.stop()
        with pytest.raises(EngineUnavailable, match="toy is stopping"):
            await take(outputs, ENDLESS)
        assert engine.health.state == "stopped"
        assert group(info.pid) == []
        assert not alive(info.grandchild)
        assert "[toy] closed" in capfd.readouterr().err


async def test_stop_kills_what_does_not_answer_by_the_deadline() -> None:
    async with running("step") as engine:
        pid = engine.health.info.pid
        hung = asyncio.create_task(collect(engine, Count(1, fault="hang")))
        await asyncio.sleep(0.1)
        started_at = time.monotonic()
        await engine.stop(deadline_s=0.5)
        assert time.monotonic() - started_at < 2
        assert group(pid) == []
        with pytest.raises(EngineUnavailable):
            await hung


async def test_ctrl_c_is_not_for_the_engine() -> None:
    async with running("step") as engine:
        os.kill(engine.health.info.pid, signal.SIGINT)
        assert await collect(engine, Count(3)) == [0, 1, 2]
        assert engine.health.restarts == 0


async def test_restarts_go_on_until_one_succeeds(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    async with running("step", ToySettings(fault="raise", only_if=broken)) as engine:
        broken.touch()
        os.kill(engine.health.info.pid, signal.SIGKILL)
        await eventually(lambda: "no toys" in (engine.health.error or ""), within_s=5)
        assert engine.health.state == "restarting"
        broken.unlink()
        await eventually(lambda: engine.health.state == "ready", within_s=10)
        assert engine.health.error is None
        assert "no toys" in (engine.health.last_error or "")
        assert time.time() - 10 < (engine.health.last_error_at or 0) <= time.time()
        assert engine.health.restarts == 2
        assert await collect(engine, Count(1)) == [0]


async def test_the_pause_before_a_restart_can_be_bounded(caplog: pytest.LogCaptureFixture) -> None:
    async with running("step", max_restart_delay_s=0.1) as engine:
        os.kill(engine.health.info.pid, signal.SIGKILL)
        await eventually(lambda: engine.health.restarts == 1, within_s=5)
        await eventually(lambda: engine.health.state == "ready", within_s=10)
        assert "toy restarts in 0.1 s" in caplog.text


async def test_stop_while_restarting_ends_it(tmp_path: Path) -> None:
    async with running("step") as engine:
        os.kill(engine.health.info.pid, signal.SIGKILL)
        await eventually(lambda: engine.health.state == "restarting", within_s=2)
        await engine.stop()
        assert (engine.health.state, engine.pid) == ("stopped", None)


def test_restart_delay_doubles_to_a_limit_and_starts_over_after_a_healthy_minute() -> None:
    delays = [0.0]
    for _ in range(8):
        delays.append(compute_restart_delay(delays[-1], uptime_s=1))
    assert delays[1:] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert compute_restart_delay(30, uptime_s=61) == 0.5


def test_a_delay_counts_from_the_start_before() -> None:
    assert compute_restart_pause(0.5, since_start_s=0.1) == 0.5
    assert compute_restart_pause(30, since_start_s=2) == 28
    assert compute_restart_pause(30, since_start_s=31) == 0.5
    assert compute_restart_pause(0.1, since_start_s=9) == 0.1
