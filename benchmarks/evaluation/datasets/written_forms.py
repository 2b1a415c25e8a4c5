"""100 everyday English sentences with written forms, and the words that are meant.

They are original, and do not follow from the rules of any front end. Each line of the table has the
class of its form ("year", "email"), the written sentence, and the sentence in words: no digit, no
sign and no abbreviation, and letters that are spelled stand alone ("P M").
"""

from dataclasses import dataclass
from pathlib import Path

_TABLE = Path(__file__).with_suffix(".tsv")


@dataclass(frozen=True)
class WrittenForm:
    """A sentence as it is written, and the words that a reader is meant to say."""

    kind: str
    written: str
    intended: str


def read_written_forms(path: Path = _TABLE) -> list[WrittenForm]:
    """Return the sentences of a table with three columns.

    Raises:
        ValueError: A line has another number of columns.
    """
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows, 1):
        if len(row) != 3:
            raise ValueError(f"{path.name}, line {number}: {len(row)} columns instead of 3")
    return [WrittenForm(*row) for row in rows]
