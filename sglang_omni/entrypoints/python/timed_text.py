"""What is said in a part of a recording."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TimedText:
    """The text of a part of a recording; `start` and `end` are in seconds from its start."""

    start: float
    end: float
    text: str
