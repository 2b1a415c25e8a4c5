"""Invariants of what a step worker is told."""

import threading
import time
from typing import Any

import pytest

from sglang_omni.engines.runtime.step_loop import StepInputQueue, run_steps
from sglang_omni.engines.runtime.transport import Cancel, Consumed, Failed, Outputs, Stop, Submit
from sglang_omni.engines.runtime.worker import StepInput, StepResults
from tests.engines.runtime.toy_workers import Count, Number, StepToy, ToyInfo


def queue_with(*request_ids: str, window: int = 2) -> StepInputQueue:
    """Return an inputs whose worker already holds some requests."""
    inputs = StepInputQueue(window)
    for request_id in request_ids:
        inputs.deliver(Submit(request_id, f"request {request_id}"))
    if request_ids:
        inputs.take(busy=False)
    return inputs


def test_arrivals_keep_their_order() -> None:
    inputs = StepInputQueue(window=2)
    for request_id in "cab":
        inputs.deliver(Submit(request_id, request_id.upper()))
    work = inputs.take(busy=False)
    assert work == StepInput(arrivals=(("c", "C"), ("a", "A"), ("b", "B")))


def test_a_cancellation_reaches_the_next_step_alone_and_once() -> None:
    inputs = queue_with("a", "b")
    inputs.deliver(Cancel("a"))
    assert inputs.take(busy=True) == StepInput(cancellations=("a",))
    assert inputs.take(busy=True) == StepInput()
    assert inputs.live_request_ids() == ("b",)


def test_a_request_cancelled_before_its_first_step_never_reaches_the_worker() -> None:
    inputs = queue_with("a")
    inputs.deliver(Submit("b", "B"))
    inputs.deliver(Cancel("b"))
    assert inputs.take(busy=True) == StepInput()


def test_outputs_of_a_cancelled_request_are_dropped() -> None:
    inputs = queue_with("a")
    inputs.deliver(Cancel("a"))
    assert not inputs.count_output("a", last=False)


def test_a_request_that_ended_is_not_cancelled() -> None:
    inputs = queue_with("a", "b")
    inputs.deliver(Cancel("a"))
    assert not inputs.count_output("a", last=True)
    assert inputs.count_output("b", last=True)
    inputs.deliver(Cancel("b"))
    inputs.deliver(Submit("c", "C"))
    assert inputs.take(busy=False) == StepInput(arrivals=(("c", "C"),))


def test_a_request_is_stalled_from_a_window_of_outputs_until_some_are_consumed() -> None:
    inputs = queue_with("a", "b", window=2)
    inputs.count_output("a", last=False)
    assert inputs.take(busy=True) == StepInput()
    inputs.count_output("a", last=False)
    assert inputs.take(busy=True) == StepInput(stalled=frozenset({"a"}))
    inputs.deliver(Consumed("a", 1))
    assert inputs.take(busy=True) == StepInput()


def test_nothing_is_remembered_of_a_request_that_ended() -> None:
    inputs = queue_with("a")
    inputs.count_output("a", last=True)
    inputs.deliver(Consumed("a", 1))
    assert inputs.live_request_ids() == ()


def test_an_idle_worker_waits_for_a_message() -> None:
    inputs = StepInputQueue(window=2)
    started_at = time.monotonic()
    threading.Timer(0.1, inputs.deliver, [Submit("a", "A")]).start()
    assert inputs.take(busy=False) == StepInput(arrivals=(("a", "A"),))
    assert time.monotonic() - started_at >= 0.1


def test_a_busy_worker_waits_when_every_client_is_behind() -> None:
    inputs = queue_with("a", window=1)
    inputs.count_output("a", last=False)
    started_at = time.monotonic()
    threading.Timer(0.1, inputs.deliver, [Consumed("a", 1)]).start()
    assert inputs.take(busy=True) == StepInput()
    assert time.monotonic() - started_at >= 0.1


def test_a_worker_that_could_do_nothing_is_stepped_when_a_client_has_caught_up() -> None:
    """One request holds the only slot and is stalled, another waits: the worker is not busy."""
    inputs = queue_with("holder", "waiting", window=1)
    inputs.count_output("holder", last=False)
    assert inputs.take(busy=True) == StepInput(stalled=frozenset({"holder"}))
    started_at = time.monotonic()
    threading.Timer(0.1, inputs.deliver, [Consumed("holder", 1)]).start()
    assert inputs.take(busy=False) == StepInput()
    assert time.monotonic() - started_at >= 0.1


class Wire:
    """Stands for an sender; notes what it is told, in order."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def send(self, message: object) -> None:
        self.told.append(message)

    def send_outputs(self, outputs: object) -> None:
        self.told.append(outputs)

    def report(self, counters: dict[str, float]) -> None:
        self.told.append(counters)

    def begin_work(self) -> None: ...

    def end_work(self) -> None: ...


def test_a_step_is_told_as_its_counters_one_message_of_outputs_and_its_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs, wire = StepInputQueue(window=9), Wire()
    for name, request in {"a": Count(3), "b": Count(3, fault="refuse"), "c": Count(3)}.items():
        inputs.deliver(Submit(name, request))
    worker = StepToy(ToyInfo(0, None, slots=9), slots=9)
    step = worker.step

    def step_once(work: StepInput) -> StepResults:
        inputs.deliver(Stop())
        return step(work)

    monkeypatch.setattr(worker, "step", step_once)
    sender: Any = wire
    run_steps(worker, inputs, sender)
    _, counters, outputs, failure = wire.told
    assert isinstance(counters, dict)
    assert counters["outputs"] == 3
    assert outputs == Outputs((("a", Number(0, False)), ("c", Number(0, False))))
    assert isinstance(failure, Failed)
    assert failure.request_id == "b"


def test_stop_goes_before_everything_else() -> None:
    inputs = queue_with("a")
    inputs.deliver(Submit("b", "B"))
    inputs.deliver(Stop())
    assert inputs.take(busy=True) is None
