"""The talker worker: joining, leaving, stalling, ending and the cost of a batch."""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from sglang_omni.engines.runtime.worker import StepInput, StepWorker
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest, TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker, open_worker
from sglang_omni.models.ming.speech.executor import PlainExecutor
from sglang_omni.models.ming.speech.modules import SpeechModules
from sglang_omni.models.ming.speech.silence import SilenceTrimmer
from sglang_omni.models.speech import StepTimes
from sglang_omni.protocol.errors import (
    CheckpointError,
    ConfigError,
    InvalidRequest,
    Overloaded,
    UnknownVoice,
)
from tests.engines.speech.conftest import MakeWorker, Reference
from tests.testing.golden import TINY
from tests.testing.vae_stream import VaeStream

TEXT = "The river runs slowly past the old stone mill."
# Full scale is 1; batches of different sizes add up in a different order.
TOLERANCE = 1e-4


def request(
    seed: int = 0, patches: int = 4, text: str = TEXT, voice: str = "DB30", segment: int = 0
) -> TalkerRequest:
    return TalkerRequest(text, voice, seed, segment, patches)


def arrivals(**requests: TalkerRequest) -> StepInput:
    return StepInput(arrivals=tuple(requests.items()))


class TalkerClient:
    """Drives a worker and collects the chunks of each request."""

    def __init__(self, worker: TalkerWorker) -> None:
        self.worker = worker
        self.chunks: dict[str, list[TalkerChunk]] = {}
        self.errors: dict[str, Exception] = {}

    def step(self, work: StepInput = StepInput()) -> list[str]:  # noqa: B008 - frozen
        results = self.worker.step(work)
        for request_id, result in results:
            if isinstance(result, Exception):
                self.errors[request_id] = result
            else:
                assert isinstance(result, TalkerChunk)
                self.chunks.setdefault(request_id, []).append(result)
        return [request_id for request_id, _ in results]

    def drain(self, work: StepInput = StepInput()) -> None:  # noqa: B008 - frozen
        self.step(work)
        while self.worker.busy:
            self.step()

    def pcm(self, request_id: str) -> np.ndarray:
        chunks = self.chunks[request_id]
        assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        return np.concatenate([chunk.pcm for chunk in chunks])


def speak(worker: TalkerWorker, one: TalkerRequest) -> np.ndarray:
    client = TalkerClient(worker)
    client.drain(arrivals(only=one))
    return client.pcm("only")


def assert_same_audio(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() < TOLERANCE


def test_the_worker_keeps_the_step_worker_contract(make_worker: MakeWorker) -> None:
    worker = make_worker()
    assert isinstance(worker, StepWorker)
    assert not worker.busy
    assert (worker.info.sample_rate, worker.info.slots) == (44100, 8)
    assert worker.info.voices == ("DB30", "plain_en")


def test_a_capped_request_equals_the_plain_path_to_its_last_sample(
    model: SpeechModules, make_worker: MakeWorker, reference: Reference
) -> None:
    patches = reference(TEXT, seed=7, segment=2, patches=5)
    stream, trimmer = VaeStream(model.vae), SilenceTrimmer(44100)
    with torch.inference_mode():
        pieces = [
            trimmer.push(stream.push(patch.latents, patch.last).numpy(), patch.last)
            for patch in patches
        ]
    expected = np.concatenate(pieces)
    assert len(expected) > 4 * 14112, "the tail was not flushed"
    assert_same_audio(speak(make_worker(), request(seed=7, segment=2, patches=5)), expected)


def test_the_stop_rule_ends_a_request_on_the_patch_that_fires_it(
    make_worker: MakeWorker, reference: Reference
) -> None:
    patches = reference(TEXT, seed=3, segment=0, patches=50, min_patches=3)
    assert patches[-1].stop_probs[1] > 0.5, "the reference ran into its cap"
    client = TalkerClient(make_worker(min_patches=3))
    client.drain(arrivals(a=request(seed=3, patches=50)))
    assert len(client.chunks["a"]) == len(patches)


def test_a_seed_sounds_the_same_alone_and_among_others_at_other_phases(
    make_worker: MakeWorker,
) -> None:
    alone = speak(make_worker(), request(seed=5, patches=6))
    client = TalkerClient(make_worker())
    for number in range(7):
        client.step(arrivals(**{f"other{number}": request(seed=number, patches=9)}))
        if number == 3:
            client.step(arrivals(mine=request(seed=5, patches=6)))
    client.drain()
    assert_same_audio(client.pcm("mine"), alone)


def test_seed_segment_and_voice_each_change_the_audio(make_worker: MakeWorker) -> None:
    base = speak(make_worker(), request(seed=1))
    for other in (request(seed=2), request(seed=1, segment=1), request(seed=1, voice="plain_en")):
        audio = speak(make_worker(), other)
        size = min(len(audio), len(base))
        assert np.abs(audio[:size] - base[:size]).max() > 10 * TOLERANCE


def test_eight_joined_requests_finish_within_the_longest_plus_eight_steps(
    make_worker: MakeWorker,
) -> None:
    worker = make_worker()
    client = TalkerClient(worker)
    for number in range(8):
        client.step(arrivals(**{str(number): request(seed=number, patches=5 + number)}))
    client.drain()
    assert worker.counters()["steps"] <= 12 + 8
    assert worker.counters()["finished"] == 8
    assert worker.counters()["patches"] == sum(range(5, 13))


def test_waiting_requests_take_freed_slots_in_order(make_worker: MakeWorker) -> None:
    client = TalkerClient(make_worker(slots=2))
    work = arrivals(**{name: request(patches=2) for name in "abcde"})
    seen = [client.step(work)] + [client.step() for _ in range(5)]
    assert seen == [["a", "b"]] * 2 + [["c", "d"]] * 2 + [["e"]] * 2
    assert not client.worker.busy


def test_a_cancelled_request_frees_its_slot_within_one_step(make_worker: MakeWorker) -> None:
    worker = make_worker(slots=1)
    client = TalkerClient(worker)
    assert client.step(arrivals(a=request(patches=50), b=request(patches=3))) == ["a"]
    assert worker.counters()["waiting"] == 1
    assert client.step(StepInput(cancellations=("a",))) == ["b"]
    assert worker.counters()["active_slots"] == 1
    assert worker.counters()["aborted"] == 1
    client.drain()
    assert_same_audio(client.pcm("b"), speak(make_worker(), request(patches=3)))


def test_a_cancelled_waiting_request_never_gets_a_slot(make_worker: MakeWorker) -> None:
    client = TalkerClient(make_worker(slots=1))
    client.step(arrivals(a=request(patches=2), b=request()))
    client.drain(StepInput(cancellations=("b",)))
    assert list(client.chunks) == ["a"]
    assert not client.worker.busy


def test_a_stalled_slot_waits_and_resumes_with_the_same_audio(make_worker: MakeWorker) -> None:
    alone = speak(make_worker(), request(seed=4, patches=5))
    client = TalkerClient(make_worker())
    client.step(arrivals(slow=request(seed=4, patches=5), quick=request(seed=8, patches=7)))
    for _ in range(3):
        assert client.step(StepInput(stalled=frozenset({"slow"}))) == ["quick"]
    assert client.worker.counters()["active_slots"] == 2
    client.drain()
    assert_same_audio(client.pcm("slow"), alone)


def test_a_worker_whose_slots_are_all_stalled_is_not_busy_though_others_wait(
    make_worker: MakeWorker,
) -> None:
    worker = make_worker(slots=1)
    client = TalkerClient(worker)
    client.step(arrivals(slow=request(patches=3), waits=request(seed=1, patches=2)))
    assert worker.busy
    assert client.step(StepInput(stalled=frozenset({"slow"}))) == []
    assert not worker.busy, "it would spin until the client has caught up"
    assert client.step() == ["slow"]
    assert worker.busy
    client.drain()
    assert set(client.chunks) == {"slow", "waits"}


def test_an_unknown_voice_is_refused_and_others_go_on(make_worker: MakeWorker) -> None:
    client = TalkerClient(make_worker())
    client.drain(arrivals(bad=request(voice="nobody"), good=request(patches=2)))
    assert isinstance(client.errors["bad"], UnknownVoice)
    assert client.errors["bad"].param == "voice"
    assert "DB30" in client.errors["bad"].message
    assert len(client.chunks["good"]) == 2


def test_a_prompt_that_does_not_fit_the_context_is_refused(make_worker: MakeWorker) -> None:
    client = TalkerClient(make_worker(context=256))
    client.drain(arrivals(long=request(text="word " * 200), short=request(patches=2)))
    assert isinstance(client.errors["long"], InvalidRequest)
    assert client.worker.counters()["request_errors"] == 1
    assert len(client.chunks["short"]) == 2


def test_counters_add_up_when_everything_ended(make_worker: MakeWorker) -> None:
    worker = make_worker()
    audio = speak(worker, request(patches=4))
    assert worker.counters() == {
        "active_slots": 0,
        "waiting": 0,
        "voices_made": 0,
        "steps": 4,
        "patches": 4,
        "finished": 1,
        "aborted": 0,
        "request_errors": 0,
        "overloaded": 0,
        "audio_seconds": pytest.approx(len(audio) / 44100),
    }


def test_an_opened_worker_is_warm_and_has_clean_counters() -> None:
    worker = open_worker(TalkerSettings(TINY, dtype="bfloat16", slots=2))
    assert not worker.busy
    assert not any(worker.counters().values())
    audio = speak(worker, request(patches=3))
    assert np.isfinite(audio).all()
    assert len(audio) > 14112


def test_an_unknown_dtype_and_a_missing_checkpoint_are_start_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="float16"):
        open_worker(TalkerSettings(TINY, dtype="float16"))
    with pytest.raises(CheckpointError):
        open_worker(TalkerSettings(tmp_path))


@pytest.mark.alone
def test_a_step_at_eight_costs_less_than_four_times_a_step_at_one(make_worker: MakeWorker) -> None:
    one, eight = TalkerClient(make_worker()), TalkerClient(make_worker())
    one.step(arrivals(a=request(patches=60)))
    eight.step(arrivals(**{str(n): request(seed=n, patches=60) for n in range(8)}))
    costs: dict[TalkerClient, list[float]] = {one: [], eight: []}
    # Interleaved, so that a slow phase of the machine meets both.
    for _ in range(15):
        for client, samples in costs.items():
            start = time.thread_time()
            client.step()
            samples.append(time.thread_time() - start)
    assert statistics.median(costs[eight]) < 4 * statistics.median(costs[one])


class Ahead(PlainExecutor):
    """Plain steps behind the face of an executor that works ahead, of a known pace.

    Samples of a step that nobody collected before the next one is finished are lost, and whoever
    reads what is not yet begun or finished fails: that is the order a device demands.
    """

    overlaps = True

    def __init__(self, model: SpeechModules, width: int = 8, seconds: float = 0.1) -> None:
        super().__init__(model, 8, 2048)
        self.max_batch_size, self.step_times = width, StepTimes(((width, seconds),), patch_s=0.32)
        self.begun: list[list[int]] = []
        self.calls: list[str] = []

    def begin(self, slots: Sequence[int]) -> None:
        self.calls.append("begin")
        self.begun.append(list(slots))
        assert len(slots) <= self.max_batch_size
        super().begin(slots)

    def finish(self, last: Sequence[bool]) -> None:
        assert self.calls[-1] in ("begin", "collect")
        self.calls.append("finish")
        super().finish(last)

    def collect(self) -> list[np.ndarray]:
        assert "finish" in self.calls
        self.calls.append("collect")
        return super().collect()


def test_an_executor_that_works_ahead_gives_the_same_audio_one_call_later(
    model: SpeechModules, make_worker: MakeWorker
) -> None:
    work = arrivals(a=request(seed=1, patches=3), b=request(seed=2, patches=5))
    ahead = Ahead(model)
    expected, client = TalkerClient(make_worker()), TalkerClient(make_worker({"executor": ahead}))
    expected.drain(work)
    assert client.step(work) == []
    assert client.step() == ["a", "b"]
    client.drain()
    for name in "ab":
        assert_same_audio(client.pcm(name), expected.pcm(name))
    assert ahead.calls[:5] == ["begin", "finish", "begin", "collect", "finish"], (
        "the device would idle"
    )


def test_a_request_cancelled_with_samples_under_way_is_silent_and_frees_its_slot(
    model: SpeechModules, make_worker: MakeWorker
) -> None:
    worker = make_worker({"executor": Ahead(model)}, slots=1, admission="queue")
    client = TalkerClient(worker)
    client.step(arrivals(a=request(patches=50), b=request(seed=2, patches=3)))
    assert client.step(StepInput(cancellations=("a",))) == []
    assert worker.counters()["active_slots"] == 0
    client.drain()
    assert list(client.chunks) == ["b"]
    assert_same_audio(client.pcm("b"), speak(make_worker(), request(seed=2, patches=3)))


def test_more_requests_than_a_step_takes_play_in_turn(
    model: SpeechModules, make_worker: MakeWorker
) -> None:
    executor = Ahead(model, width=3, seconds=0.01)
    client = TalkerClient(make_worker({"executor": executor, "clock": lambda: 0.0}))
    client.drain(arrivals(**{str(n): request(seed=n, patches=4) for n in range(8)}))
    for name in ("0", "7"):
        alone = speak(make_worker(), request(seed=int(name), patches=4))
        assert_same_audio(client.pcm(name), alone)
    turns = [slot for step in executor.begun for slot in step]
    assert all(turns.count(slot) == 4 for slot in range(8))
    assert len(executor.begun) <= 8 * 4 / 3 + 4, "steps were not filled"


def test_a_request_is_refused_before_others_run_dry_but_never_a_later_fragment(
    model: SpeechModules, make_worker: MakeWorker
) -> None:
    """Half a second a step of one stream: nobody can be promised anything, in real time."""
    over = {"executor": Ahead(model, width=1, seconds=0.5)}
    client = TalkerClient(make_worker(over))
    client.step(arrivals(first=request(), later=request(segment=1)))
    error = client.errors["first"]
    assert isinstance(error, Overloaded)
    assert error.status == 429
    assert error.retry_after_s is not None
    assert error.retry_after_s >= 1
    assert client.worker.counters()["overloaded"] == 1
    assert "later" not in client.errors
    queueing = TalkerClient(make_worker(over, admission="queue"))
    queueing.step(arrivals(first=request()))
    assert not queueing.errors
