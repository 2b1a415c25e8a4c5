"""When the user's turn begins and ends: a pure policy over the probabilities of speech.

`server_vad` ends a turn after a fixed silence. `semantic_vad` here runs no model of meaning: its
eagerness sets how long a silence ends a turn (0.5, 1 or 2 s), and doubles it, within OpenAI's
longest waits of 2, 4 and 8 s, for a turn in which less than a second was spoken: whoever has only
said "well" is likely to go on.
"""

from dataclasses import dataclass, replace
from typing import Literal

from sglang_omni.media.vad import FRAME_MS

Eagerness = Literal["low", "medium", "high", "auto"]

# Silero's own hysteresis: speech ends below its threshold less this.
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
    """How turns are told apart. Times in milliseconds; a turn is cut at `most_ms`.

    `short_silence_ms` is the silence that ends a turn with less than a second of speech.
    """

    threshold: float = 0.5
    prefix_ms: int = 300
    silence_ms: int = 500
    short_silence_ms: int = 500
    most_ms: int = 300_000


@dataclass(frozen=True)
class SpeechStarted:
    """The user began to speak; the turn's audio begins at `start_ms`, padding included."""

    start_ms: int


@dataclass(frozen=True)
class SpeechStopped:
    """The user's turn is the audio from `start_ms` to `end_ms`, final silence included."""

    start_ms: int
    end_ms: int


Turn = SpeechStarted | SpeechStopped


@dataclass(frozen=True)
class TurnState:
    """What was heard so far, in milliseconds since the session's audio began.

    `floor_ms` is where the last turn ended: padding does not reach behind it. `spoken_ms` counts
    the frames of speech of the turn that `start_ms` opened, None between turns.
    """

    now_ms: int = 0
    floor_ms: int = 0
    start_ms: int | None = None
    spoken_ms: int = 0
    silent_ms: int = 0


def step(rules: TurnRules, state: TurnState, probability: float) -> tuple[TurnState, Turn | None]:
    """Take one frame of `FRAME_MS`: the state after it, and what began or ended with it."""
    state = replace(state, now_ms=state.now_ms + FRAME_MS)
    if state.start_ms is None:
        return _quiet(rules, state, probability)
    return _speaking(rules, state, state.start_ms, probability)


def abandon(state: TurnState) -> TurnState:
    """The audio so far was committed or cleared: no turn is open, none may begin before now."""
    return TurnState(now_ms=state.now_ms, floor_ms=state.now_ms)


def semantic_rules(eagerness: Eagerness) -> TurnRules:
    """The rules of `semantic_vad`."""
    silence = SEMANTIC_SILENCE_MS[eagerness]
    return TurnRules(silence_ms=silence, short_silence_ms=2 * silence)


def _quiet(rules: TurnRules, state: TurnState, probability: float) -> tuple[TurnState, Turn | None]:
    if probability < rules.threshold:
        return state, None
    begin = state.now_ms - FRAME_MS - rules.prefix_ms
    start = max(begin, state.floor_ms)
    return replace(state, start_ms=start, spoken_ms=FRAME_MS, silent_ms=0), SpeechStarted(start)


def _speaking(
    rules: TurnRules, state: TurnState, start_ms: int, probability: float
) -> tuple[TurnState, Turn | None]:
    if probability >= rules.threshold - HYSTERESIS:
        state = replace(state, spoken_ms=state.spoken_ms + FRAME_MS, silent_ms=0)
    else:
        state = replace(state, silent_ms=state.silent_ms + FRAME_MS)
    is_short = state.spoken_ms < SHORT_TURN_MS
    enough = rules.short_silence_ms if is_short else rules.silence_ms
    if state.silent_ms < enough and state.now_ms - start_ms < rules.most_ms:
        return state, None
    return abandon(state), SpeechStopped(start_ms, state.now_ms)
