"""One run for all who ask at once; it ends with the last of them."""

import asyncio

import pytest

from sglang_omni.caching.single_flight import SingleFlight


class Work:
    """Counts its runs, and ends when it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.num_runs, self.num_cancelled = 0, 0
        self.released, self.error = asyncio.Event(), error

    async def run(self) -> int:
        self.num_runs += 1
        number = self.num_runs
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.num_cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return number


async def start(
    flights: SingleFlight[str, int], work: Work, count: int = 1
) -> list["asyncio.Task[int]"]:
    callers = [asyncio.create_task(flights.run("key", work.run)) for _ in range(count)]
    await asyncio.sleep(0.01)
    return callers


async def cancel(task: "asyncio.Task[int]") -> None:
    task.cancel()
    await asyncio.wait({task})
    await asyncio.sleep(0)


async def test_concurrent_callers_share_one_result_and_a_later_one_runs_anew() -> None:
    flights, work = SingleFlight[str, int](), Work()
    callers = await start(flights, work, 3)
    assert "key" in flights
    work.released.set()
    assert await asyncio.gather(*callers) == [1, 1, 1]
    assert "key" not in flights
    assert await flights.run("key", work.run) == 2


async def test_keys_do_not_share() -> None:
    flights, work = SingleFlight[str, int](), Work()
    work.released.set()
    assert await asyncio.gather(*(flights.run(key, work.run) for key in "ab")) == [1, 2]


async def test_an_error_reaches_every_caller_and_is_not_kept() -> None:
    flights, work = SingleFlight[str, int](), Work(ValueError("no"))
    callers = await start(flights, work, 2)
    work.released.set()
    errors = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(error) for error in errors] == ["no", "no"]
    work.error = None
    assert await flights.run("key", work.run) == 2


async def test_cancelling_one_caller_does_not_cancel_the_others() -> None:
    flights, work = SingleFlight[str, int](), Work()
    first, second = await start(flights, work, 2)
    await cancel(first)
    work.released.set()
    assert await second == 1
    assert work.num_cancelled == 0


async def test_the_work_is_cancelled_when_the_last_caller_goes() -> None:
    flights, work = SingleFlight[str, int](), Work()
    for caller in await start(flights, work, 2):
        await cancel(caller)
    assert work.num_cancelled == 1
    assert "key" not in flights
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_work_that_keeps_running_outlives_its_callers_and_can_be_joined() -> None:
    flights, work = SingleFlight[str, int](), Work()
    (first,) = await start(flights, work)
    flights.keep_running("key")
    await cancel(first)
    assert work.num_cancelled == 0
    assert "key" in flights
    (second,) = await start(flights, work)
    work.released.set()
    assert await second == work.num_runs == 1
    assert "key" not in flights


@pytest.mark.parametrize("error", [None, ValueError("no")])
async def test_work_without_callers_is_forgotten_when_it_ends(error: Exception | None) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
    flights, work = SingleFlight[str, int](), Work(error)
    (caller,) = await start(flights, work)
    flights.keep_running("key")
    await cancel(caller)
    work.released.set()
    await asyncio.sleep(0.01)
    assert "key" not in flights
    assert complaints == []
