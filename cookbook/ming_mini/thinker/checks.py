"""Is an answer right? One rule for each kind of answer."""

import re

from cookbook.ming_mini.numbers import number_words
from cookbook.ming_mini.thinker.items import Item
from measurement.edit_distance import edit_distance

_NUMBER = re.compile(r"-?\d+")
_LETTER = re.compile(r"\b([A-D])\b")
LARGEST_SPOKEN = 2000
RIGHT_WORD_ERROR = 0.0


def is_right(item: Item, said: str) -> bool:
    """Whether `said` answers the item."""
    match item.check:
        case "number":
            return last_number(said) == last_number(item.answer)
        case "letter":
            return first_letter(said) == item.answer
        case "contains":
            return any(phrase in normal(said) for phrase in item.accept)
        case "words":
            return word_errors(item.answer, said) == 0
        case _:
            return normal(said) == normal(item.answer)


def normal(text: str) -> str:
    """Lower case, single spaces, no marks at the ends or before spaces."""
    text = re.sub(r"[.,!?;:\"']+(?=\s|$)", "", text.lower())
    return " ".join(text.strip(" \t\n\"'.").split())


def last_number(text: str) -> int | None:
    """The last number in digits; without any, the text read as a number in words."""
    found = _NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text))
    return int(found[-1]) if found else _SPOKEN.get(normal(text))


_SPOKEN = {number_words(number): number for number in range(LARGEST_SPOKEN)}


def first_letter(text: str) -> str | None:
    """The first of A to D that stands alone."""
    found = _LETTER.search(text.strip())
    return found[1] if found else None


def words(text: str) -> list[str]:
    """The words of a transcript, without case, marks and hyphens."""
    return re.findall(r"[a-z0-9']+", text.lower())


def word_errors(expected: str, said: str) -> int:
    """Words to insert, delete or replace to turn one transcript into the other."""
    return edit_distance(words(expected), words(said))
