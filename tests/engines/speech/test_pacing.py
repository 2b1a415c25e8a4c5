"""The policies for streams: who steps next, who is admitted, and that these keep playing."""

import random
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import pytest

from sglang_omni.engines.speech.pacing import (
    LatencyTarget,
    PlayingStream,
    can_sustain,
    check_admission,
    compute_buffered_s,
    compute_capacity,
    estimate_first_audio_s,
    select_streams,
)
from sglang_omni.models.speech import StepTimes
from sglang_omni.protocol.errors import Overloaded

# The step times that the talker must reach on one H200.
STEP_TIMES = StepTimes(
    ((1, 0.0035), (16, 0.007), (32, 0.012), (64, 0.020), (128, 0.038)), patch_s=0.32
)
TARGET = LatencyTarget(slots=2048)
PATCH_S = STEP_TIMES.patch_s
# An eighth of that engine, to simulate in a second.
SMALL = StepTimes(((1, 0.0035), (4, 0.012), (8, 0.020), (16, 0.038)), patch_s=0.32)


def playing(*buffered_s: float, remaining: float = 60.0) -> list[PlayingStream]:
    return [
        PlayingStream(f"p{number}", seconds, remaining) for number, seconds in enumerate(buffered_s)
    ]


def refusal(*arguments: Any) -> Overloaded:
    with pytest.raises(Overloaded) as caught:
        check_admission(*arguments)
    return caught.value


def test_a_step_takes_as_long_as_the_bucket_it_runs_in() -> None:
    assert [STEP_TIMES.step_s(n) for n in (1, 2, 16, 17, 128)] == [
        0.0035,
        0.007,
        0.007,
        0.012,
        0.038,
    ]
    with pytest.raises(ValueError, match="at most, not 129"):
        STEP_TIMES.step_s(129)


def test_first_audio_goes_before_streams_that_can_wait_and_then_the_least_buffered() -> None:
    streams = playing(3.0, 0.5, 1.0)
    assert select_streams(["n0", "n1"], streams, STEP_TIMES, 4) == ["n0", "n1", "p1", "p2"]
    assert select_streams(["n0", "n1"], streams, STEP_TIMES, 1) == ["n0"]
    assert select_streams([], streams, STEP_TIMES, 9) == ["p1", "p2", "p0"]


def test_a_stream_that_would_underrun_by_waiting_a_step_goes_before_first_audio() -> None:
    two_steps = 2 * STEP_TIMES.step_s(2)
    streams = playing(3.0, two_steps - 0.001, two_steps, -0.1)
    assert select_streams(["n0"], streams, STEP_TIMES, 2) == ["p3", "p1"]
    assert select_streams(["n0"], streams[2:3], STEP_TIMES, 2) == ["n0", "p2"]


def test_a_buffer_is_what_was_sent_less_what_has_played() -> None:
    assert compute_buffered_s(sent_s=3.2, first_sent_at_s=100.0, now_s=101.0) == pytest.approx(2.2)
    assert compute_buffered_s(sent_s=0.32, first_sent_at_s=100.0, now_s=101.0) < 0


def test_capacity_is_real_time_less_the_reserve_within_the_slots() -> None:
    full = 128 * PATCH_S / 0.038
    assert compute_capacity(STEP_TIMES, replace(TARGET, reserve=0.0)) == int(full) == 1077
    assert compute_capacity(STEP_TIMES, TARGET) == int(full * 0.9)
    assert compute_capacity(STEP_TIMES, replace(TARGET, slots=128)) == 128
    # A larger bucket that is not faster per stream does not count.
    assert compute_capacity(
        StepTimes((*STEP_TIMES.buckets, (256, 0.2)), patch_s=0.32), TARGET
    ) == compute_capacity(STEP_TIMES, TARGET)


def test_a_stream_beyond_capacity_is_told_when_the_next_one_ends() -> None:
    target = replace(TARGET, slots=3)
    streams = [PlayingStream("a", 5.0, 20.0), PlayingStream("b", 5.0, 4.5)]
    check_admission(streams, 0, STEP_TIMES, target)
    full = refusal([*streams, PlayingStream("c", 5.0, 9.0)], 0, STEP_TIMES, target)
    assert (full.retry_after_s, full.message) == (
        4.5,
        "speech capacity reached (3 of 3 streams); retry in 5 s",
    )
    # Two of four must end. When a new stream ends is unknown.
    assert refusal(playing(5, 5, 5, remaining=7.0), 1, STEP_TIMES, target).retry_after_s == 7.0
    assert refusal([], 3, STEP_TIMES, target).retry_after_s == 30.0
    assert refusal(playing(5, 5, 5, remaining=0.1), 0, STEP_TIMES, target).retry_after_s == 1.0


def test_first_audio_takes_its_patches_and_every_prefill() -> None:
    quick = replace(TARGET, reserve=0.0)
    assert estimate_first_audio_s(1, STEP_TIMES, quick) == pytest.approx(2 * 0.038)
    assert estimate_first_audio_s(64, STEP_TIMES, quick) == pytest.approx(2 * 0.038)
    assert estimate_first_audio_s(65, STEP_TIMES, quick) == pytest.approx(2 * 0.038)
    assert estimate_first_audio_s(129, STEP_TIMES, quick) == pytest.approx(3 * 0.038)
    prefilling = replace(STEP_TIMES, prefill_s=0.01)
    assert estimate_first_audio_s(129, prefilling, quick) == pytest.approx(1.29 + 3 * 0.038)


def test_a_stream_whose_first_audio_would_be_late_is_not_admitted() -> None:
    in_time = max(n for n in range(2000) if estimate_first_audio_s(n, STEP_TIMES, TARGET) <= 0.5)
    check_admission([], in_time - 1, STEP_TIMES, TARGET)
    assert "first audio would take 0.51 s" in refusal([], in_time, STEP_TIMES, TARGET).message


def test_a_stream_is_not_admitted_if_another_would_underrun() -> None:
    short = playing(*[0.15] * 300)
    assert can_sustain(short, 0, STEP_TIMES, TARGET)
    check_admission(short, 0, STEP_TIMES, TARGET)
    # Three steps for playing streams and one for the new ones are one too many.
    assert "would stall" in refusal(short, 150, STEP_TIMES, TARGET).message
    check_admission(playing(*[5.0] * 300), 150, STEP_TIMES, TARGET)


def test_a_prefill_that_outlasts_a_buffer_is_refused() -> None:
    slow = replace(STEP_TIMES, prefill_s=0.2)
    assert "would stall" in refusal(playing(0.15), 0, slow, TARGET).message
    check_admission(playing(0.5), 0, slow, TARGET)


def test_an_existing_underrun_rejects_no_stream() -> None:
    check_admission(playing(-2.0, 0.0, 0.01, 5.0), 0, STEP_TIMES, TARGET)


def test_audio_that_is_all_made_falls_due_no_more() -> None:
    short = [0.15] * 300
    assert not can_sustain(playing(*short), 150, STEP_TIMES, TARGET)
    assert can_sustain(playing(*short, remaining=0.0), 150, STEP_TIMES, TARGET)


@dataclass
class Simulated:
    """One request in a simulated engine."""

    name: str
    patches: int
    made: int = 0
    first_at_s: float | None = None
    arrived_s: float = 0.0
    min_buffered_s: float = 0.0

    def sent_s(self) -> float:
        return (self.made - 1) * PATCH_S

    def buffered_at(self, now_s: float) -> float:
        assert self.first_at_s is not None
        return compute_buffered_s(self.sent_s(), self.first_at_s, now_s)

    def gain(self, now_s: float) -> None:
        """One more patch. The first holds no audio yet: the decoder looks ahead."""
        if self.first_at_s is not None:
            self.min_buffered_s = min(self.min_buffered_s, self.buffered_at(now_s))
        self.made += 1
        if self.made == 2:
            self.first_at_s = now_s


@dataclass
class Engine:
    """Steps by `select_streams` and admits by `check_admission`, in simulated time."""

    step_times: StepTimes
    target: LatencyTarget
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.held: list[Simulated] = []
        self.done: list[Simulated] = []
        self.refused = 0
        self.max_held = 0

    def ask(self, request: Simulated) -> None:
        streams, new_ids = self._split()
        try:
            check_admission(streams, len(new_ids), self.step_times, self.target)
        except Overloaded:
            self.refused += 1
        else:
            self.held.append(request)
            self.now_s += self.step_times.prefill_s
        self.max_held = max(self.max_held, len(self.held))

    def step(self) -> None:
        streams, new_ids = self._split()
        chosen = select_streams(new_ids, streams, self.step_times, self.step_times.max_streams)
        self.now_s += self.step_times.step_s(max(1, len(chosen)))
        for request in [one for one in self.held if one.name in set(chosen)]:
            request.gain(self.now_s)
            if request.made == request.patches:
                self.held.remove(request)
                self.done.append(request)

    def _split(self) -> tuple[list[PlayingStream], list[str]]:
        streams = [
            PlayingStream(one.name, one.buffered_at(self.now_s), (one.patches - one.made) * PATCH_S)
            for one in self.held
            if one.first_at_s is not None
        ]
        return streams, [one.name for one in self.held if one.first_at_s is None]


def simulate(rate: float, seconds: float, prefill_s: float, seed: int) -> Engine:
    """Requests of 20 to 60 patches arrive `rate` times a second, some in crowds of ten."""
    chance = random.Random(seed)
    engine = Engine(replace(SMALL, prefill_s=prefill_s), TARGET)
    due_s, number = 0.0, 0
    while engine.now_s < seconds:
        while due_s <= engine.now_s:
            for _ in range(10 if chance.random() < 0.02 else 1):
                patches = chance.randint(20, 60)
                engine.ask(Simulated(f"r{number}", patches, arrived_s=engine.now_s))
                number += 1
            due_s += chance.expovariate(rate)
        engine.step()
    return engine


@pytest.mark.parametrize(("rate", "prefill_s"), [(20.0, 0.0), (20.0, 0.004), (4.0, 0.004)])
@pytest.mark.parametrize("seed", [1, 2])
def test_an_admitted_stream_never_underruns_and_starts_in_time(
    rate: float, prefill_s: float, seed: int
) -> None:
    engine = simulate(rate, 30.0, prefill_s, seed)
    assert len(engine.done) > 50
    for request in engine.done:
        assert request.first_at_s is not None
        assert request.min_buffered_s >= 0, request
        late_s = request.first_at_s - request.arrived_s
        # The step under way when it came is not foreseen, nor is who is urgent meanwhile.
        assert late_s <= TARGET.first_audio_s + 2 * 0.038, request


def test_the_engine_is_full_before_streams_are_rejected_for_long() -> None:
    engine = simulate(rate=20.0, seconds=15.0, prefill_s=0.0, seed=3)
    assert engine.refused > 0
    assert engine.max_held >= 0.8 * compute_capacity(SMALL, TARGET)
    gentle = simulate(rate=2.0, seconds=15.0, prefill_s=0.0, seed=3)
    assert gentle.refused == 0


def test_the_policies_need_no_torch() -> None:
    code = "import sys, sglang_omni.engines.speech.pacing; sys.exit('torch' in sys.modules)"
    assert subprocess.call([sys.executable, "-c", code]) == 0
