"""Split a text into parts of bounded length: at sentences, clauses, then units."""

import re
from collections.abc import Iterator

from sglang_omni.models.ming.text.tokens import count_units, has_content, split_units

MIN_PART_UNITS = 5

# Replaces a dot that does not end a sentence (3.14, U.S.A.). It counts as one unit, because the
# reference replaces it by a word.
_DOT = "\ue000"
_INNER_DOT = re.compile(r"(?<=\d)\.(?=\d)|(?<=[A-Z])\.(?=[A-Z])")
_FULL_WIDTH = str.maketrans(".!?,", "。！？，")
_SENTENCE = re.compile(r"[^。！？]*[。！？]|[^。！？]+")
_CLAUSE = re.compile(r"[^，,;；]*[，,;；]|[^，,;；]+")
_LEADING = "，,:; \t\n\r\f\v"


def split_text(text: str, limit: int = 50) -> list[str]:
    """Split a text into parts of at most `limit` units, in order; [] if it has no content.

    A text within the limit stays unchanged, apart from line breaks. Otherwise sentence marks and
    commas become full-width, and adjacent short parts are joined again.
    """
    if not has_content(text):
        return []
    text = _INNER_DOT.sub(_DOT, text.replace(_DOT, "")).replace("\n", " ").replace("。，", "。")
    if _count_units(text) <= limit:
        return [_restore_dots(text)]
    parts: list[str] = []
    for sentence in _split_sentences(text.translate(_FULL_WIDTH)):
        for clause in _split_clauses(sentence, limit):
            _append_part(parts, clause, limit)
    return [_restore_dots(part) for part in parts]


def _count_units(text: str) -> int:
    return count_units(text) + text.count(_DOT)


def _restore_dots(text: str) -> str:
    return text.replace(_DOT, ".")


def _split_sentences(text: str) -> list[str]:
    """Split into sentences with their marks; the last one gets a mark if it has none."""
    sentences = _SENTENCE.findall(text)
    if sentences[-1][-1] not in "。！？":
        sentences[-1] += "。"
    return sentences


def _split_clauses(sentence: str, limit: int) -> Iterator[str]:
    """Yield clauses within the limit; a very short one is joined with the next."""
    clauses = [clause.strip() for clause in _CLAUSE.findall(sentence)]
    while clauses:
        clause = clauses.pop(0)
        if _count_units(clause) < MIN_PART_UNITS and clauses:
            joined = clause + clauses[0]
            if _count_units(joined) <= limit:
                clauses.pop(0)
                clause = joined
        yield from _split_long_clause(clause, limit)


def _split_long_clause(clause: str, limit: int) -> Iterator[str]:
    """Split a clause between units where it exceeds the limit."""
    part, num_units = "", 0
    for unit in split_units(clause):
        unit_count = _count_units(unit)
        if part and num_units + unit_count > limit:
            yield part
            part, num_units = "", 0
        part, num_units = part + unit, num_units + unit_count
    if part:
        yield part


def _append_part(parts: list[str], new: str, limit: int) -> None:
    """Append `new`, or join it to the last part if both fit.

    A short start of a sentence is not joined.
    """
    new = new.lstrip(_LEADING)
    if not new:
        return
    last = parts[-1] if parts else ""
    is_short_start = last.endswith(("。", "！", "？")) and _count_units(new) < MIN_PART_UNITS
    if not last or is_short_start or _count_units(last) + _count_units(new) > limit:
        parts.append(new)
        return
    needs_space = not last.endswith(" ") and re.match(r"[a-zA-Z0-9]", new)
    parts[-1] = f"{last} {new}" if needs_space else last + new


def locate_parts(text: str, parts: list[str]) -> list[tuple[int, int]]:
    """Return where each part is in `text`, as (start, end) in characters.

    A part that `split_text` changed is not found. It is then placed in proportion to its index, as
    in the reference.
    """
    spans, start = [], 0
    for index, part in enumerate(parts):
        found_at = text.find(part, start)
        start = found_at if found_at >= 0 else index * len(text) // len(parts)
        spans.append((start, start + len(part)))
        start += len(part)
    return spans
