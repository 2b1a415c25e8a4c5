"""Simulated engines: a thinker and a talker that batch their requests as the real ones do."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.cluster.events import Card
from benchmarks.cluster.times import TalkerTimes, ThinkerTimes

PATCH_S = 0.32
"""Seconds of speech that a step of the talker makes for every stream."""
FIRST_AUDIO_STEPS = 3
"""Steps until a stream's first chunk has left.

Steps overlap with the host's work, so that a chunk leaves during a later step than its own. Three
agree best with the measured first audio.
"""
OnCount = Callable[[int], None]


@dataclass
class Answer:
    """A request to the thinker; `on_token` is called with the number of tokens so far."""

    prompt: int
    tokens: int
    on_token: OnCount
    made: int = 0


class Thinker:
    """A thinker: waiting prompts are read before anything is decoded."""

    def __init__(self, card: Card, times: ThinkerTimes) -> None:
        self._card, self._times = card, times
        self._waiting, self._running = deque[Answer](), list[Answer]()
        self._is_busy = False

    def submit(self, answer: Answer) -> None:
        """Take a request."""
        self._waiting.append(answer)
        self._step()

    def _step(self) -> None:
        if self._is_busy:
            return
        admitted = self._admit()
        if admitted:
            work = self._times.read(sum(one.prompt for one in admitted))
        elif self._running:
            work = self._times.step.at(len(self._running))
        else:
            return
        self._is_busy = True
        self._running += admitted
        self._card.run(work, lambda: self._stepped(admitted or list(self._running)))

    def _admit(self) -> list[Answer]:
        admitted: list[Answer] = []
        tokens, room = 0, self._times.step.most - len(self._running)
        while self._waiting and len(admitted) < room:
            tokens += self._waiting[0].prompt
            if admitted and tokens > self._times.prefill.most:
                break
            admitted.append(self._waiting.popleft())
        return admitted

    def _stepped(self, answers: list[Answer]) -> None:
        for answer in answers:
            answer.made += 1
        self._running = [one for one in self._running if one.made < one.tokens]
        self._is_busy = False
        for answer in answers:
            answer.on_token(answer.made)
        self._step()


@dataclass
class Stream:
    """Speech to make: `on_patch` is called with the number of patches that were sent so far."""

    patches: int
    on_patch: OnCount
    made: int = 0


class Talker:
    """A talker: new streams are read in the step that admits them."""

    def __init__(self, card: Card, times: TalkerTimes) -> None:
        self._card, self._times = card, times
        self._waiting, self._running = deque[Stream](), list[Stream]()
        self._is_busy = False

    @property
    def load(self) -> int:
        """Return the number of streams that wait or run."""
        return len(self._waiting) + len(self._running)

    def submit(self, stream: Stream) -> None:
        """Take a stream."""
        self._waiting.append(stream)
        self._step()

    def _step(self) -> None:
        if self._is_busy:
            return
        room = self._times.step.most - len(self._running)
        admitted = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        self._running += admitted
        if not self._running:
            return
        self._is_busy = True
        step_s = self._times.step.at(len(self._running))
        self._card.run(step_s + self._times.admission(len(admitted)), self._stepped)

    def _stepped(self) -> None:
        streams, self._is_busy = self._running, False
        for stream in streams:
            stream.made += 1
        # The last patches leave together with the end of the stream.
        self._running = [one for one in streams if one.made < one.patches + FIRST_AUDIO_STEPS - 1]
        for stream in streams:
            if stream.made >= FIRST_AUDIO_STEPS:
                stream.on_patch(stream.made - FIRST_AUDIO_STEPS + 1)
        self._step()
