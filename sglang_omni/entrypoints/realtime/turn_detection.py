"""Decides when the user's turn starts and ends: a pure policy over the probabilities of speech.

`server_vad` ends a turn after a fixed silence. `semantic_vad` uses no language model here: its
eagerness sets the silence that ends a turn (0.5, 1 or 2 s). The silence is twice as long for a turn
with less than a second of speech, because a speaker who only said "well" is likely to go on. That
stays within OpenAI's maximum waits of 2, 4 and 8 s.
"""

from dataclasses import dataclass, replace
from typing import Literal

from sglang_omni.media.vad import FRAME_MS

Eagerness = Literal["low", "medium", "high", "auto"]

# Silero's own hysteresis: speech ends below the threshold minus this value.
HYSTERESIS = 0.15
SHORT_TURN_MS = 1000
SEMANTIC_SILENCE_MS: dict[Eagerness, int] = {
    "high": 500,
    "medium": 1000,
    "auto": 1000,
    "low": 2000,
}


@dataclass(frozen=True)
class TurnRules:
    """Parameters of turn detection. Times are in milliseconds.

    Attributes:
        threshold: Probability from which a frame counts as speech.
        prefix_ms: Audio before the speech that belongs to the turn.
        silence_ms: Silence that ends a turn.
        short_silence_ms: Silence that ends a turn with less than a second of speech.
        max_turn_ms: Length at which a turn ends in any case.
    """

    threshold: float = 0.5
    prefix_ms: int = 300
    silence_ms: int = 500
    short_silence_ms: int = 500
    max_turn_ms: int = 300_000


@dataclass(frozen=True)
class SpeechStarted:
    """The user started to speak. The turn's audio starts at `start_ms`, padding included."""

    start_ms: int


@dataclass(frozen=True)
class SpeechStopped:
    """The user's turn is the audio from `start_ms` to `end_ms`, final silence included."""

    start_ms: int
    end_ms: int


TurnEvent = SpeechStarted | SpeechStopped


@dataclass(frozen=True)
class TurnState:
    """State of turn detection. Times are in milliseconds since the session's audio started.

    Attributes:
        now_ms: End of the audio so far.
        min_start_ms: End of the last turn; the padding of the next one does not go before it.
        start_ms: Start of the open turn, None between turns.
        spoken_ms: Speech in the open turn.
        silent_ms: Silence at the end of the open turn.
    """

    now_ms: int = 0
    min_start_ms: int = 0
    start_ms: int | None = None
    spoken_ms: int = 0
    silent_ms: int = 0


def step(
    rules: TurnRules, state: TurnState, probability: float
) -> tuple[TurnState, TurnEvent | None]:
    """Process one frame of `FRAME_MS`. Return the new state, and the event if there is one."""
    state = replace(state, now_ms=state.now_ms + FRAME_MS)
    if state.start_ms is None:
        return _step_silence(rules, state, probability)
    return _step_speech(rules, state, state.start_ms, probability)


def reset_turn(state: TurnState) -> TurnState:
    """Return the state after the audio was committed or cleared: no turn starts before now."""
    return TurnState(now_ms=state.now_ms, min_start_ms=state.now_ms)


def semantic_vad_rules(eagerness: Eagerness) -> TurnRules:
    """Return the rules of `semantic_vad` for an eagerness."""
    silence = SEMANTIC_SILENCE_MS[eagerness]
    return TurnRules(silence_ms=silence, short_silence_ms=2 * silence)


def _step_silence(
    rules: TurnRules, state: TurnState, probability: float
) -> tuple[TurnState, TurnEvent | None]:
    if probability < rules.threshold:
        return state, None
    padded_start_ms = state.now_ms - FRAME_MS - rules.prefix_ms
    start_ms = max(padded_start_ms, state.min_start_ms)
    state = replace(state, start_ms=start_ms, spoken_ms=FRAME_MS, silent_ms=0)
    return state, SpeechStarted(start_ms)


def _step_speech(
    rules: TurnRules, state: TurnState, start_ms: int, probability: float
) -> tuple[TurnState, TurnEvent | None]:
    if probability >= rules.threshold - HYSTERESIS:
        state = replace(state, spoken_ms=state.spoken_ms + FRAME_MS, silent_ms=0)
    else:
        state = replace(state, silent_ms=state.silent_ms + FRAME_MS)
    is_short = state.spoken_ms < SHORT_TURN_MS
    required_silence_ms = rules.short_silence_ms if is_short else rules.silence_ms
    if state.silent_ms < required_silence_ms and state.now_ms - start_ms < rules.max_turn_ms:
        return state, None
    return reset_turn(state), SpeechStopped(start_ms, state.now_ms)
