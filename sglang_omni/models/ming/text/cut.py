"""Cut a text into fragments of bounded semantic length, at sentences, clauses, then units."""

import re
from collections.abc import Iterator

from sglang_omni.models.ming.text.tokens import has_content, semantic_length, units

MIN_TAIL = 5

# Stands for a dot that ends nothing (3.14, U.S.A.). It weighs one unit, as in the reference,
# where the stand-in is a word.
_DOT = "\ue000"
_INNER_DOT = re.compile(r"(?<=\d)\.(?=\d)|(?<=[A-Z])\.(?=[A-Z])")
_FULL_WIDTH = str.maketrans(".!?,", "。！？，")
_SENTENCE = re.compile(r"[^。！？]*[。！？]|[^。！？]+")
_CLAUSE = re.compile(r"[^，,;；]*[，,;；]|[^，,;；]+")
_LEADING = "，,:; \t\n\r\f\v"


def cut(text: str, limit: int = 50) -> list[str]:
    """Fragments of at most `limit` semantic units, in order; [] if there is no content.

    A text within the limit stays as it is, apart from line breaks. Otherwise sentence marks and
    commas become full-width ones, and short neighbours are put together again.
    """
    if not has_content(text):
        return []
    text = _INNER_DOT.sub(_DOT, text.replace(_DOT, "")).replace("\n", " ").replace("。，", "。")
    if _weight(text) <= limit:
        return [_restore(text)]
    pieces: list[str] = []
    for sentence in _sentences(text.translate(_FULL_WIDTH)):
        for clause in _clauses(sentence, limit):
            _append(pieces, clause, limit)
    return [_restore(piece) for piece in pieces]


def _weight(text: str) -> int:
    return semantic_length(text) + text.count(_DOT)


def _restore(text: str) -> str:
    return text.replace(_DOT, ".")


def _sentences(text: str) -> list[str]:
    """Each with its mark; the last one gets a mark if it has none."""
    found = _SENTENCE.findall(text)
    if found[-1][-1] not in "。！？":
        found[-1] += "。"
    return found


def _clauses(sentence: str, limit: int) -> Iterator[str]:
    """Clauses within the limit; one that is very short takes the next along."""
    clauses = [clause.strip() for clause in _CLAUSE.findall(sentence)]
    while clauses:
        clause = clauses.pop(0)
        if _weight(clause) < MIN_TAIL and clauses:
            both = clause + clauses[0]
            if _weight(both) <= limit:
                clauses.pop(0)
                clause = both
        yield from _pack(clause, limit)


def _pack(clause: str, limit: int) -> Iterator[str]:
    """Cut a clause between units where it exceeds the limit."""
    piece, weight = "", 0
    for unit in units(clause):
        cost = _weight(unit)
        if piece and weight + cost > limit:
            yield piece
            piece, weight = "", 0
        piece, weight = piece + unit, weight + cost
    if piece:
        yield piece


def _append(pieces: list[str], new: str, limit: int) -> None:
    """Add `new`, to the last piece if both fit, unless it is a short start after a sentence."""
    new = new.lstrip(_LEADING)
    if not new:
        return
    last = pieces[-1] if pieces else ""
    short_start = last.endswith(("。", "！", "？")) and _weight(new) < MIN_TAIL
    if not last or short_start or _weight(last) + _weight(new) > limit:
        pieces.append(new)
        return
    spaced = not last.endswith(" ") and re.match(r"[a-zA-Z0-9]", new)
    pieces[-1] = f"{last} {new}" if spaced else last + new


def spans(text: str, pieces: list[str]) -> list[tuple[int, int]]:
    """Where each piece lies in `text`, (start, end) in characters.

    A piece that the cutter changed is not found; the reference then puts it at its share of the
    text, and so does this.
    """
    found, start = [], 0
    for index, piece in enumerate(pieces):
        at = text.find(piece, start)
        start = at if at >= 0 else index * len(text) // len(pieces)
        found.append((start, start + len(piece)))
        start += len(piece)
    return found
