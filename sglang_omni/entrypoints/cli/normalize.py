"""Implements `sgl-omni normalize`: prints the words that are spoken for a text."""

import sys
import unicodedata
from collections.abc import Iterator, Sequence

from sglang_omni.entrypoints.requests.preview import preview_input
from sglang_omni.models.speech_text import ReadingOptions, preview_by_rules
from sglang_omni.normalization.preview import SpokenForm

_HEAD = SpokenForm("WRITTEN", "CLASS", "SPOKEN")


def normalize(text: str | None, reading: ReadingOptions, *, explains: bool) -> int:
    """Print what is spoken for a text, or for each line of standard input.

    Args:
        text: The text; None for the lines of standard input.
        reading: How it is read.
        explains: Whether a table of the written forms follows.

    Returns:
        The exit status.

    Raises:
        InvalidRequest: The text is SSML that is not supported.
    """
    for one in sys.stdin if text is None else (text,):
        # A filter is answered line by line, so the program that writes the lines can wait.
        print("\n".join(_describe(_unescape(one), reading, explains)), flush=True)
    return 0


def _unescape(line: str) -> str:
    return line.rstrip("\n").replace("\\n", "\n")


def _describe(text: str, reading: ReadingOptions, explains: bool) -> Iterator[str]:
    preview = preview_input(text, reading, preview_by_rules)
    yield " ".join(preview.text.split("\n"))
    if explains and preview.forms:
        yield from _draw_table((_HEAD, *preview.forms))


def _draw_table(forms: Sequence[SpokenForm]) -> Iterator[str]:
    """Yield the lines of a table, with columns as wide as what they contain."""
    rows = [[_show(form.written), form.name, _show(form.spoken)] for form in forms]
    widths = [max(map(_measure, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell + " " * (width - _measure(cell)) for cell, width in zip(row, widths, strict=True)
        )
        yield f"  {'  '.join(cells)}".rstrip()


def _show(text: str) -> str:
    return text.replace("\n", "\\n") if text.strip(" ") else repr(text)


def _measure(text: str) -> int:
    """Return how many columns of a terminal a text takes: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
