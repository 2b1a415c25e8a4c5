"""The rules that turn speech probabilities into turns."""

from dataclasses import replace

import pytest

from sglang_omni.entrypoints.realtime.turn_detection import (
    Eagerness,
    SpeechStarted,
    SpeechStopped,
    TurnEvent,
    TurnRules,
    TurnState,
    reset_turn,
    semantic_vad_rules,
    step,
)
from sglang_omni.media.vad import FRAME_MS

RULES = TurnRules(prefix_ms=320, silence_ms=480, short_silence_ms=480)


def play(rules: TurnRules, *stretches: tuple[float, int]) -> tuple[TurnState, list[TurnEvent]]:
    """Feed stretches of (probability, milliseconds); returns where that ends, and the turns."""
    state, turns = TurnState(), []
    for probability, ms in stretches:
        for _ in range(ms // FRAME_MS):
            state, turn = step(rules, state, probability)
            turns += [turn] if turn else []
    return state, turns


def test_a_turn_begins_before_its_speech_and_ends_after_the_silence() -> None:
    state, turns = play(RULES, (0.0, 640), (0.9, 960), (0.0, 640))
    assert turns == [SpeechStarted(320), SpeechStopped(320, 2080)]
    assert state.start_ms is None


def test_speech_is_reported_with_its_first_frame() -> None:
    state, turns = play(RULES, (0.0, 640), (0.9, FRAME_MS))
    assert turns == [SpeechStarted(320)]
    assert state.now_ms == 640 + FRAME_MS


def test_padding_stops_at_the_beginning() -> None:
    _, turns = play(RULES, (0.9, FRAME_MS))
    assert turns == [SpeechStarted(0)]


def test_padding_does_not_reach_into_the_turn_before() -> None:
    _, turns = play(RULES, (0.9, 320), (0.0, 480), (0.0, 64), (0.9, 320))
    assert turns == [SpeechStarted(0), SpeechStopped(0, 800), SpeechStarted(800)]


def test_a_pause_shorter_than_the_silence_does_not_end_a_turn() -> None:
    _, turns = play(RULES, (0.9, 320), (0.0, 448), (0.9, 320), (0.0, 480))
    assert turns == [SpeechStarted(0), SpeechStopped(0, 320 + 448 + 320 + 480)]


def test_the_threshold_decides_and_has_hysteresis() -> None:
    assert play(RULES, (0.49, 640))[1] == []
    assert play(replace(RULES, threshold=0.4), (0.49, 640))[1] == [SpeechStarted(0)]
    # Between the thresholds speech goes on, but does not begin.
    assert len(play(RULES, (0.9, 320), (0.4, 6400))[1]) == 1
    assert len(play(RULES, (0.9, 320), (0.3, 6400))[1]) == 2


def test_a_turn_is_cut_when_it_is_too_long() -> None:
    _, turns = play(replace(RULES, max_turn_ms=960), (0.9, 1920))
    assert turns == [
        SpeechStarted(0),
        SpeechStopped(0, 960),
        SpeechStarted(960),
        SpeechStopped(960, 1920),
    ]


def test_reset_closes_the_turn_and_keeps_the_time() -> None:
    state, _ = play(RULES, (0.9, 640))
    assert reset_turn(state) == TurnState(now_ms=640, min_start_ms=640)


@pytest.mark.parametrize(("eagerness", "wait_ms"), [("high", 500), ("auto", 1000), ("low", 2000)])
def test_eagerness_is_how_long_is_waited(eagerness: Eagerness, wait_ms: int) -> None:
    rules = semantic_vad_rules(eagerness)
    frames_ms = -(-wait_ms // FRAME_MS) * FRAME_MS
    assert play(rules, (0.9, 1600), (0.0, 9600))[1][1] == SpeechStopped(0, 1600 + frames_ms)
    # Who has said but a word is given twice as long.
    twice_ms = -(-2 * wait_ms // FRAME_MS) * FRAME_MS
    assert play(rules, (0.9, 640), (0.0, 9600))[1][1] == SpeechStopped(0, 640 + twice_ms)
