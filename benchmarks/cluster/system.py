"""A simulated group of cards that answers turns: encoder, thinker, segmenter, talkers."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import numpy as np

from benchmarks.cluster.engines import PATCH_S, Answer, Stream, Talker, Thinker
from benchmarks.cluster.events import Card, Clock
from benchmarks.cluster.times import TalkerTimes, ThinkerTimes
from benchmarks.cluster.workload import Turn, TurnRecord

FIRST_SEGMENT_TOKENS = 15
"""Tokens of an answer until its first segment is spoken.

Chosen for the measured answers, whose first full stop is the twelfth token: one client of
`serving_h200_fp8.json` has first audio after 84 ms, of which 28 are for the first token and 13 for
the talker alone, and a token takes 2.5.
"""
LATER_SEGMENT_TOKENS = 40
"""The longest segment of the segmenter."""
HEARD_S = 30.0
"""Seconds of the recording whose encoding was measured."""
OnTurn = Callable[[TurnRecord], None]
Draw = Callable[[Random], tuple[Turn, float]]


@dataclass(frozen=True)
class Segment:
    """A part of an answer: the tokens after which it can be spoken, and its patches."""

    until: int
    patches: int


def cut_segments(tokens: int, patches: int) -> list[Segment]:
    """Cut an answer of so many tokens and patches into segments of the lengths above."""
    ends = [*range(min(FIRST_SEGMENT_TOKENS, tokens), tokens, LATER_SEGMENT_TOKENS), tokens]
    cuts = [round(patches * end / tokens) for end in ends]
    sizes = [last - first for first, last in zip((0, *cuts), cuts, strict=False)]
    return [Segment(end, size) for end, size in zip(ends, sizes, strict=True) if size > 0]


@dataclass(frozen=True)
class GroupPlan:
    """Engines on cards: thinker and audio encoder are on card 0, a talker on each of those listed.

    Attributes:
        name: What it is called.
        thinker: Times of the thinker.
        talker: Times of every talker.
        talker_cards: Numbers of cards; a talker on card 0 shares it.
        heard_s: Seconds to encode a recording of `HEARD_S`.
        cards: The kinds of the cards.
    """

    name: str
    thinker: ThinkerTimes
    talker: TalkerTimes
    talker_cards: tuple[int, ...]
    heard_s: float = 0.0
    cards: tuple[str, ...] = ()


class SpokenAnswer:
    """Speech of an answer: one segment of its text after the other, each once its text is there."""

    def __init__(
        self, clock: Clock, talker: Talker, turn: Turn, record: TurnRecord, ended: OnTurn
    ) -> None:
        self._clock, self._talker, self._record, self._ended = clock, talker, record, ended
        patches = max(1, round(turn.speech_s / PATCH_S))
        # Texts to speak were one segment each in what was measured.
        whole = [Segment(0, patches)]
        self._segments = deque(cut_segments(turn.tokens, patches) if turn.tokens else whole)
        self._text, self._is_speaking = 0, False

    def text_grows_to(self, tokens: int) -> None:
        """Speak what can be spoken of so many tokens."""
        self._text = tokens
        if not self._is_speaking and self._segments and self._segments[0].until <= tokens:
            self._is_speaking = True
            segment = self._segments.popleft()
            sent = partial(self._sent, segment)
            self._talker.submit(Stream(segment.patches, sent))

    def _sent(self, segment: Segment, made: int) -> None:
        self._record.first_audio = self._record.first_audio or self._clock.now
        self._record.chunks.append(self._clock.now)
        if made < segment.patches:
            return
        self._is_speaking = False
        if self._segments:
            self.text_grows_to(self._text)
        else:
            self._record.ended = self._clock.now
            self._ended(self._record)


class Group:
    """A running group. A turn goes to its thinker and to the talker with the fewest streams."""

    def __init__(self, clock: Clock, plan: GroupPlan) -> None:
        self._clock, self._plan = clock, plan
        self.cards = [Card(clock) for _ in range(1 + max(plan.talker_cards))]
        self._thinker = Thinker(self.cards[0], plan.thinker)
        self._talkers = [Talker(self.cards[one], plan.talker) for one in plan.talker_cards]

    def ask(self, turn: Turn, ended: OnTurn) -> None:
        """Answer a turn; one without tokens is a text to speak."""
        record = TurnRecord(self._clock.now)
        speech = self._speech(turn, record, ended) if turn.speech_s else None
        if speech is not None and not turn.tokens:
            speech.text_grows_to(0)
        elif turn.heard_s and self._plan.heard_s:
            work = self._plan.heard_s * turn.heard_s / HEARD_S
            self.cards[0].run(work, lambda: self._think(turn, record, speech, ended))
        else:
            self._think(turn, record, speech, ended)

    def _speech(self, turn: Turn, record: TurnRecord, ended: OnTurn) -> SpokenAnswer:
        talker = min(self._talkers, key=lambda one: one.load)
        return SpokenAnswer(self._clock, talker, turn, record, ended)

    def _think(
        self, turn: Turn, record: TurnRecord, speech: SpokenAnswer | None, ended: OnTurn
    ) -> None:
        def on_token(made: int) -> None:
            record.first_token = record.first_token or self._clock.now
            if speech is not None:
                speech.text_grows_to(made)
            elif made == turn.tokens:
                record.ended = self._clock.now
                ended(record)

        self._thinker.submit(Answer(turn.prompt, turn.tokens, on_token))


@dataclass(frozen=True)
class Outcome:
    """What a simulated load got: times in seconds, `nan` where nothing was asked for."""

    turns: int
    seconds: float
    first_token: tuple[float, float, float]
    first_audio: tuple[float, float, float]
    took: tuple[float, float, float]
    speech_s: float
    with_gaps: float
    busy: tuple[float, ...]

    @property
    def turns_a_second(self) -> float:
        """Return the rate at which turns ended."""
        return self.turns / self.seconds


def summarise(
    records: Sequence[TurnRecord], seconds: float, cards: Iterable[Card], busy_s: float
) -> Outcome:
    """Summarise the turns that ended within so many seconds."""

    def spread(times: list[float | None], began: list[float]) -> tuple[float, float, float]:
        found = [one - start for one, start in zip(times, began, strict=True) if one is not None]
        if not found:
            return (float("nan"),) * 3
        half, most = np.percentile(found, (50, 95))
        return float(np.mean(found)), float(half), float(most)

    began = [one.began for one in records]
    gaps = [one.gap_s(PATCH_S) > 0 for one in records if one.chunks]
    return Outcome(
        len(records),
        seconds,
        spread([one.first_token for one in records], began),
        spread([one.first_audio for one in records], began),
        spread([one.ended for one in records], began),
        sum(len(one.chunks) for one in records) * PATCH_S,
        float(np.mean(gaps)) if gaps else 0.0,
        tuple(card.busy_s / busy_s for card in cards),
    )


def closed_loop(
    plan: GroupPlan, clients: int, turns: Sequence[Turn], count: int, seed: int = 1
) -> Outcome:
    """Let clients ask the next of `count` turns as soon as they are answered."""
    clock, random = Clock(), Random(seed)
    group, records, asked = Group(clock, plan), list[TurnRecord](), 0

    def ask() -> None:
        nonlocal asked
        if asked == count:
            return
        asked += 1
        group.ask(random.choice(turns), ended)

    def ended(record: TurnRecord) -> None:
        records.append(record)
        # The client begins with the next turn after the engines' step, not within it.
        clock.after(0.0, ask)

    for _ in range(clients):
        clock.after(0.0, ask)
    clock.run(3600.0)
    last = max(one.ended for one in records if one.ended is not None)
    return summarise(records, last, group.cards, last)


def conversations(
    plan: GroupPlan,
    callers: int,
    draw: Draw,
    seconds: float,
    ramp: float = 20.0,
    counted_from: float = 20.0,
    seed: int = 1,
) -> Outcome:
    """Let callers listen to each answer, pause and ask again, for `seconds` after the ramp.

    Callers begin at random times within `ramp` seconds. `draw` gives a turn, and the pause after
    it. Turns that begin before `counted_from` do not count.
    """
    clock, random = Clock(), Random(seed)
    group, records = Group(clock, plan), list[TurnRecord]()

    def begin() -> None:
        turn, pause = draw(random)

        def ended(record: TurnRecord) -> None:
            records.append(record)
            assert record.first_audio is not None
            heard_until = max(clock.now, record.first_audio + turn.speech_s)
            clock.after(heard_until - clock.now + pause, begin)

        group.ask(turn, ended)

    for _ in range(callers):
        clock.after(random.uniform(0.0, ramp), begin)
    clock.run(ramp + seconds)
    counted = [one for one in records if one.began >= counted_from]
    return summarise(counted, seconds, group.cards, ramp + seconds)


def arrivals(plan: GroupPlan, turns: Iterable[tuple[float, Turn]], seconds: float) -> Outcome:
    """Answer turns that arrive at given times, up to a time."""
    clock = Clock()
    group, records = Group(clock, plan), list[TurnRecord]()
    for at, turn in turns:
        if at > seconds:
            break
        clock.after(at, partial(group.ask, turn, records.append))
    clock.run(seconds)
    return summarise(records, seconds, group.cards, seconds)
