"""Check answers: one rule for each kind of answer."""

import re

from cookbook.ming_mini.numbers import number_words
from cookbook.ming_mini.thinker.items import Item
from measurement.edit_distance import edit_distance

_NUMBER = re.compile(r"-?\d+")
_LETTER = re.compile(r"\b([A-D])\b")
MAX_SPOKEN = 2000
RIGHT_WORD_ERROR = 0.0


def is_right(item: Item, said: str) -> bool:
    """Return whether `said` answers the item."""
    match item.check:
        case "number":
            return last_number(said) == last_number(item.answer)
        case "letter":
            return first_letter(said) == item.answer
        case "contains":
            return any(phrase in normalise_text(said) for phrase in item.accept)
        case "words":
            return word_errors(item.answer, said) == 0
        case _:
            return normalise_text(said) in map(normalise_text, (item.answer, *item.accept))


def normalise_text(text: str) -> str:
    """Return lower case text with single spaces.

    There is no punctuation at the ends or before spaces.
    """
    text = re.sub(r"[.,!?;:\"']+(?=\s|$)", "", text.lower())
    return " ".join(text.strip(" \t\n\"'.").split())


def last_number(text: str) -> int | None:
    """Return the last number in digits, or else the text parsed as a number in words."""
    found = _NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text))
    return int(found[-1]) if found else _SPOKEN.get(normalise_text(text))


_SPOKEN = {number_words(number): number for number in range(MAX_SPOKEN)}


def first_letter(text: str) -> str | None:
    """Return the first letter of A to D that stands alone."""
    found = _LETTER.search(text.strip())
    return found[1] if found else None


def words(text: str) -> list[str]:
    """Return the words of a transcript, without case, punctuation and hyphens."""
    return re.findall(r"[a-z0-9']+", text.lower())


def word_errors(expected: str, said: str) -> int:
    """Return the fewest word insertions, deletions and substitutions between two transcripts."""
    return edit_distance(words(expected), words(said))
