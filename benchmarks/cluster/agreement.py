"""The simulation beside what was measured on one H200."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from benchmarks.cluster.system import GroupPlan, Outcome, closed_loop, conversations
from benchmarks.cluster.times import (
    Row,
    StepTimes,
    ThinkerTimes,
    serving_row,
    talker_times,
    thinker_times,
)
from benchmarks.cluster.workload import Turn

WITHIN = 0.15
TALKER, THINKER = "talker_h200.json", "thinker_h200_fp8_deepgemm.json"
WHOLE = "serving_h200_fp8.json"
SPEECH = dict.fromkeys((1, 16, 64), "speech_h200.json") | {128: "speech_h200_128.json"}
LISTENERS = "speech_h200_listeners.json"
SHORT_PROMPT = 40
"""Tokens of the measured chats' prompts: a sentence and the template."""


@dataclass(frozen=True)
class Compared:
    """A figure as it was measured and as it is simulated."""

    load: str
    figure: str
    measured: float
    simulated: float

    @property
    def off(self) -> float:
        """Return the relative difference of the simulation."""
        return self.simulated / self.measured - 1


def compare() -> list[Compared]:
    """Simulate every measured load, and return the figures side by side."""
    return [*_spoken_texts(), *_listeners(), *_chats()]


def _spoken_texts() -> Iterator[Compared]:
    plan = GroupPlan("talker", thinker_times(THINKER), talker_times(TALKER), (0,))
    for clients, file in SPEECH.items():
        row = serving_row(file, "closed", clients)
        turns = _turns(row)
        found = closed_loop(plan, clients, turns, len(turns))
        load = f"texts to speak, {clients} clients"
        yield from _first_audio(load, row, found)
        rate = found.speech_s / found.seconds
        yield Compared(load, "speech a second", row["audio_s_per_s"], rate)


def _listeners() -> Iterator[Compared]:
    row = serving_row(LISTENERS, "listeners", 600)
    turns = _turns(row)

    def draw(random: Random) -> tuple[Turn, float]:
        return random.choice(turns), 0.0

    plan = GroupPlan("talker", thinker_times(THINKER), talker_times(TALKER), (0,))
    found = conversations(plan, 600, draw, 30.0, ramp=10.0, counted_from=0.0)
    yield from _first_audio("600 listeners", row, found)


def _chats() -> Iterator[Compared]:
    """Compare chats with the steps of the same run's chats in text.

    The clients say the same few things, which use fewer experts than even routing does.
    """
    texts = {clients: serving_row(WHOLE, "closed", clients, "text") for clients in (1, 16)}
    step = StepTimes((1, 16), tuple(row["tpot_ms"]["p50"] / 1000 for row in texts.values()))
    thinker = ThinkerTimes(step, thinker_times(THINKER).prefill)
    plan = GroupPlan("whole", thinker, talker_times(TALKER), (0,))
    for clients in (1, 16):
        for chat, row in (("text", texts[clients]), ("speech", _speech_row(clients))):
            turns = _turns(row)
            found = closed_loop(plan, clients, turns, len(turns))
            load = f"chats, {chat}, {clients} clients"
            if chat == "speech":
                yield from _first_audio(load, row, found)
            took = row["took_ms"]["p50"]
            yield Compared(load, "whole answer, half (ms)", took, 1000 * found.took[1])


def _speech_row(clients: int) -> Row:
    return serving_row(WHOLE, "closed", clients, "speech")


def _turns(row: Row) -> list[Turn]:
    """Return the turns of a row's records, in which tokens are missing for texts to speak."""
    return [
        Turn(SHORT_PROMPT, one[12], one[4]) if len(one) > 12 else Turn(0, 0, one[4])
        for one in row["records"]
    ]


def _first_audio(load: str, row: Row, found: Outcome) -> Iterator[Compared]:
    times = row["ttfa_ms"]
    yield Compared(load, "first audio, half (ms)", times["p50"], 1000 * found.first_audio[1])
    yield Compared(load, "first audio, 95 % (ms)", times["p95"], 1000 * found.first_audio[2])
