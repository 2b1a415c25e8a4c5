"""The synthetic talker makes what the real one makes, but for the sound."""

from typing import Any

from benchmarks.synthetic.talker import (
    PATCH_SAMPLES,
    SyntheticSettings,
    SyntheticTalker,
    open_worker,
)
from sglang_omni.engines.runtime.worker import StepInput, StepResults, StepWorker
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest

REQUEST = TalkerRequest("a text", "synthetic", 0)


def worker(**settings: Any) -> SyntheticTalker:
    return open_worker(SyntheticSettings(step_ms=0, stream_ms=0, **settings))


def to_the_end(talker: SyntheticTalker, results: StepResults) -> StepResults:
    while talker.busy:
        results += talker.step(StepInput())
    return results


def test_every_patch_of_a_request_is_decoded_once_and_the_first_waits_for_the_second() -> None:
    talker = worker(patches=4)
    assert isinstance(talker, StepWorker)
    results = to_the_end(talker, talker.step(StepInput(arrivals=(("r", REQUEST),))))
    chunks = [chunk for _, chunk in results if isinstance(chunk, TalkerChunk)]
    assert [len(chunk.pcm) // PATCH_SAMPLES for chunk in chunks] == [0, 1, 1, 2]
    assert [chunk.last for chunk in chunks] == [False, False, False, True]


def test_all_take_turns_in_a_step_that_is_too_small_for_them() -> None:
    talker = worker(batch=2, patches=3)
    arrivals = tuple((name, REQUEST) for name in "abc")
    order = [name for name, _ in to_the_end(talker, talker.step(StepInput(arrivals)))]
    assert order == ["a", "b", "c", "a", "b", "c", "a", "b", "c"]


def test_slots_bound_who_is_held_and_the_cancelled_leave_theirs() -> None:
    talker = worker(slots=1, patches=3)
    talker.step(StepInput(tuple((name, REQUEST) for name in "abc")))
    assert talker.counters()["active_slots"] == 1
    assert talker.counters()["waiting"] == 2
    ((name, _),) = talker.step(StepInput(cancellations=("a", "b")))
    assert name == "c"


def test_the_stalled_do_not_step() -> None:
    talker = worker(patches=3)
    talker.step(StepInput((("a", REQUEST), ("b", REQUEST))))
    assert [name for name, _ in talker.step(StepInput(stalled=frozenset("a")))] == ["b"]
