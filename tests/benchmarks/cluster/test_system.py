"""A group of cards answers turns as its engines' times say."""

from random import Random

import pytest

from benchmarks.cluster.engines import FIRST_AUDIO_STEPS
from benchmarks.cluster.system import (
    FIRST_SEGMENT_TOKENS,
    GroupPlan,
    arrivals,
    closed_loop,
    conversations,
    cut_segments,
)
from benchmarks.cluster.times import StepTimes, TalkerTimes, ThinkerTimes
from benchmarks.cluster.workload import Habits, Turn

THINKER = ThinkerTimes(StepTimes((1, 4), (0.010, 0.016)), StepTimes((100, 200), (0.1, 0.2)))
TALKER = TalkerTimes(StepTimes((1, 4), (0.020, 0.032)), admission_s=0.0, text_s=0.0)
APART = GroupPlan("apart", THINKER, TALKER, (1,))
SHARED = GroupPlan("shared", THINKER, TALKER, (0,))


def test_a_written_answer_takes_its_prefill_and_its_steps() -> None:
    found = closed_loop(APART, 1, [Turn(100, 11)], 1)
    assert found.first_token[0] == pytest.approx(0.1)
    assert found.took[0] == pytest.approx(0.1 + 10 * 0.010)
    assert found.busy[1] == 0


def test_requests_share_steps() -> None:
    four = closed_loop(APART, 4, [Turn(50, 11)], 4)
    # One is read alone, the three that arrive meanwhile together, in 150 tokens; then four decode.
    assert four.took[0] == pytest.approx(0.1 + 0.15 + 10 * 0.016, rel=0.02)


def test_first_audio_waits_for_the_first_segment() -> None:
    tokens = FIRST_SEGMENT_TOKENS + 20
    found = closed_loop(APART, 1, [Turn(100, tokens, speech_s=6.4)], 1)
    text_s = 0.1 + (FIRST_SEGMENT_TOKENS - 1) * 0.010
    assert found.first_audio[0] == pytest.approx(text_s + FIRST_AUDIO_STEPS * 0.020)
    assert found.speech_s == pytest.approx(6.4)
    assert found.with_gaps == 0


def test_a_talker_on_the_same_card_slows_both_down() -> None:
    turns = [Turn(100, 60, speech_s=12.8)]
    apart, shared = (closed_loop(plan, 2, turns, 8) for plan in (APART, SHARED))
    assert shared.took[0] > 1.2 * apart.took[0]


def test_a_talker_that_is_slower_than_speech_leaves_gaps() -> None:
    slow = TalkerTimes(StepTimes((1, 4), (0.4, 0.4)))
    found = closed_loop(GroupPlan("slow", THINKER, slow, (1,)), 1, [Turn(0, 0, 6.4)], 3)
    assert found.with_gaps == 1.0


def test_a_seed_fixes_the_callers_and_more_of_them_wait_longer() -> None:
    few, again, many = (
        conversations(APART, callers, Habits().draw, 60.0) for callers in (2, 2, 12)
    )
    assert few == again
    assert many.first_audio[2] > few.first_audio[2]


def test_arrivals_are_answered_when_they_come() -> None:
    found = arrivals(APART, [(1.0, Turn(100, 5)), (30.0, Turn(100, 5)), (99.0, Turn(1, 1))], 60.0)
    assert found.turns == 2
    assert found.took[0] == pytest.approx(0.14)


@pytest.mark.parametrize("tokens", [1, 5, FIRST_SEGMENT_TOKENS, 26, 200])
def test_segments_have_all_patches_and_end_with_the_text(tokens: int) -> None:
    segments = cut_segments(tokens, 30)
    assert sum(one.patches for one in segments) == 30
    assert segments[-1].until == tokens
    assert [one.until for one in segments] == sorted({one.until for one in segments})


def test_callers_say_what_their_means_say() -> None:
    random, habits = Random(1), Habits()
    turns, pauses = zip(*(habits.draw(random) for _ in range(4000)), strict=True)
    assert sum(turn.speech_s for turn in turns) / 4000 == pytest.approx(8.1, abs=0.4)
    assert sum(pauses) / 4000 == pytest.approx(7.1, abs=0.4)
