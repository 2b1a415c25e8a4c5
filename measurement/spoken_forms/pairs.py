"""Pairs of written and spoken text in files: class, written, readings separated by bars."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """A written text and its accepted readings.

    Attributes:
        language: "en" or "zh".
        source: Name of its file.
        category: Class of what is written, such as "date".
        written: The text.
        readings: What may be spoken for it.
    """

    language: str
    source: str
    category: str
    written: str
    readings: tuple[str, ...]


def read_pairs(folder: Path, language: str) -> Iterator[Pair]:
    r"""Yield the pairs of a language from `folder/LANGUAGE/*.tsv`; a line break is written `\n`."""
    for path in sorted((folder / language).glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("# "):
                category, written, readings = line.split("\t")
                text = written.replace("\\n", "\n")
                yield Pair(language, path.stem, category, text, tuple(readings.split("|")))
