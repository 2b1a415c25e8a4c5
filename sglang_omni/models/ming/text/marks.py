"""Texts in the punctuation that a talker was trained with."""

import re

_NEAREST = {"’": "'", "…": ". "} | dict.fromkeys(";:()–—", ", ")
_LONE_DASH = re.compile(r"\s-+(?=\s)")
_MARK = re.compile(r"[^\w\s]|_")
_BLANK_BEFORE_MARK = re.compile(r"\s+(?=[,.?!])")
_RUN_OF_MARKS = re.compile(r"[,.?!](?:\s*[,.?!])+")
_ENDS = (".", "?", "!")


def write_in_marks(text: str, known: str) -> str:
    """Return an English text with the punctuation in `known` alone, and a mark at its end.

    Another mark becomes the known one that comes nearest, or nothing, and a full stop stands where
    the last mark is missing. A small talker that never met quotation marks says other words after
    one, and one that never met a text without a last mark may say the text again.

    Args:
        text: A normalised text with at least one word.
        known: The marks, among them comma and full stop.
    """
    text = _MARK.sub(lambda mark: _choose_mark(mark[0], known), text)
    text = _LONE_DASH.sub(",", text)
    text = _RUN_OF_MARKS.sub(_choose_end, _BLANK_BEFORE_MARK.sub("", text))
    text = " ".join(text.split()).lstrip(",.?! ")
    return text if text.endswith(_ENDS) else text.rstrip(",- ") + "."


def _choose_mark(mark: str, known: str) -> str:
    """Return what stands for a mark: itself, another one, or a blank."""
    nearest = mark if mark in known else _NEAREST.get(mark, " ")
    return nearest if nearest.strip() in known else " "


def _choose_end(run: re.Match[str]) -> str:
    """Return the mark that stands for several: the first that ends a sentence, if there is one."""
    return next((mark for mark in run[0] if mark in _ENDS), ",")
