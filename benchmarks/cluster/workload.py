"""What callers do: what a turn asks for, when it begins, and what follows it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

SHORTEST_S, LONGEST_S = 1.0, 60.0
"""Of what callers say and hear."""


@dataclass(frozen=True)
class Turn:
    """A request: prompt and answer in tokens, and the answer's speech in seconds, 0 for none.

    `heard_s` are the seconds of the question's recording, 0 for a written one.
    """

    prompt: int
    tokens: int
    speech_s: float = 0.0
    heard_s: float = 0.0


@dataclass(frozen=True)
class Habits:
    """What callers do who talk: the means of what they say, hear and wait.

    Lengths vary exponentially around their means. A prompt's tokens are those that are new in a
    turn; what was said before is in the cache. 26 tokens are 6.4 s of speech, as in the measured
    answers.
    """

    prompt: int = 200
    answer_s: float = 8.0
    question_s: float = 4.0
    pause_s: float = 3.0
    tokens_a_second: float = 26 / 6.4

    def draw(self, random: Random) -> tuple[Turn, float]:
        """Draw a turn, and the seconds from its answer's end to the next question's end."""
        speech = min(LONGEST_S, max(SHORTEST_S, random.expovariate(1 / self.answer_s)))
        asked = min(LONGEST_S, max(SHORTEST_S, random.expovariate(1 / self.question_s)))
        tokens = round(speech * self.tokens_a_second)
        pause = random.expovariate(1 / self.pause_s) + asked
        return Turn(self.prompt, tokens, speech, asked), pause


@dataclass
class TurnRecord:
    """When a turn began, and what it got, in seconds of simulated time."""

    began: float
    first_token: float | None = None
    first_audio: float | None = None
    ended: float | None = None
    chunks: list[float] = field(default_factory=list)

    def gap_s(self, chunk_s: float) -> float:
        """Return how long a listener waited after the first chunk for later ones."""
        ready, waited = None, 0.0
        for arrived in self.chunks:
            if ready is not None and arrived > ready:
                waited += arrived - ready
                ready = arrived
            ready = (arrived if ready is None else ready) + chunk_s
        return waited


def read_trace(path: Path) -> list[tuple[float, Turn]]:
    """Read arrivals: a JSON object a line with `at` in seconds and the fields of `Turn`.

    Raises:
        ValueError: A line has other fields.
    """
    arrivals = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            fields = json.loads(line)
            arrivals.append((float(fields.pop("at")), Turn(**fields)))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}:{number}: {error}") from None
    return sorted(arrivals, key=lambda one: one[0])
