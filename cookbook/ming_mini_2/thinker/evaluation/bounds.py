"""What the next version must reach, and what it aims at; and which of it a report reaches.

The rows are those of `suite`. An accuracy must be at least its bound, a word error at most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Bound:
    """A bound of the mean of some rows.

    Attributes:
        name: What is measured.
        rows: Beginnings of the names of its rows.
        must: The bound of the mean.
        aim: What would be better.
        least: The bound of every single row, or None.
        key: The number of a row; a word error must be small.
    """

    name: str
    rows: tuple[str, ...]
    must: float
    aim: float
    least: float | None = None
    key: str = "accuracy"

    @property
    def is_error(self) -> bool:
        """Return whether smaller is better."""
        return self.key == "word_error"


SUMS = ("arithmetic", "sum_in_words", "word_problem", "story_in_words")
BOUNDS = (
    Bound("sums in figures and in words, word problems", SUMS, 0.95, 0.99),
    Bound("pictures, every kind", ("picture_",), 0.85, 0.95, 0.70),
    Bound("tool calls, automatic", ("tool_call, automatic",), 0.85, 0.95),
    Bound("tool calls, forced", ("tool_call, forced",), 0.85, 0.95),
    Bound("transcriptions", ("transcribe",), 0.15, 0.08, key="word_error"),
    Bound("spoken questions", ("spoken_question",), 0.80, 0.90),
)


@dataclass(frozen=True)
class Judgement:
    """A bound with the measured mean and the rows beyond `least`; None if nothing was measured."""

    bound: Bound
    mean: float | None
    low: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Return whether the bound is met."""
        if self.mean is None or self.low:
            return False
        return self.mean <= self.bound.must if self.bound.is_error else self.mean >= self.bound.must

    def __str__(self) -> str:
        """Return a line for people."""
        value = "not measured" if self.mean is None else f"{self.mean:.1%}"
        relation = "at most" if self.bound.is_error else "at least"
        low = f"; below {self.bound.least:.0%}: {', '.join(self.low)}" if self.low else ""
        state = "met" if self.is_met else "NOT MET"
        text = f"{self.bound.name}: {value}, must be {relation} {self.bound.must:.0%}"
        return f"{text} (aim {self.bound.aim:.0%}){low}: {state}"


def judge(rows: Rows, bounds: Sequence[Bound] = BOUNDS) -> list[Judgement]:
    """Judge a report by its rows."""
    return [_judge(rows, bound) for bound in bounds]


def _judge(rows: Rows, bound: Bound) -> Judgement:
    found = {
        name: float(row[bound.key])
        for name, row in rows.items()
        if name.startswith(bound.rows) and bound.key in row
    }
    if not found:
        return Judgement(bound, None)
    low = [name for name, value in found.items() if bound.least and value < bound.least]
    return Judgement(bound, sum(found.values()) / len(found), tuple(low))
