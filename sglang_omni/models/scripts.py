"""Which words of a text are in a script that the checkpoint does not speak."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import islice

# Scripts as Unicode's character names begin, and the characters that are looked over quickly.
LATIN = ("LATIN", "A-Za-z\u00aa-\u024f\u1e00-\u1eff")
HAN = ("CJK", "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff")
SCRIPTS_OF = {"en": (LATIN,), "zh": (HAN, LATIN)}
# Han characters have many blocks; their names tell them all.
_NAMED_OTHERWISE = {"\u3005": "CJK", "\u3006": "CJK", "\u3007": "CJK"}


def unspoken_words(text: str, languages: tuple[str, ...], limit: int = 3) -> list[str]:
    """Return up to `limit` words of `text` in scripts that none of the languages is written in.

    A Greek letter by itself is a symbol, not a word. Languages are ISO 639-1 codes; the script of
    an unknown one is not known, and then nothing is found.
    """
    if not set(languages) <= SCRIPTS_OF.keys():
        return []
    known = {script for language in languages for script, _ in SCRIPTS_OF[language]}
    found = (
        word for run in _other_runs(languages).finditer(text) for word in _words(run[0], known)
    )
    return list(islice(found, limit))


@cache
def _other_runs(languages: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of letters beyond the common ones: a book is searched in milliseconds."""
    common = "".join(dict.fromkeys(chars for one in languages for _, chars in SCRIPTS_OF[one]))
    return re.compile(rf"[^\W\d_{common}]+")


def _words(run: str, known: set[str]) -> Iterator[str]:
    """Yield the words in a run of letters that are in none of the `known` scripts."""
    word = ""
    for character in f"{run} ":
        if character.isalpha() and script_of(character) not in known:
            word += character
            continue
        if word and not _is_symbol(word):
            yield word
        word = ""


def _is_symbol(word: str) -> bool:
    return len(word) == 1 and script_of(word) == "GREEK"


def script_of(letter: str) -> str:
    """Return the script of a letter as Unicode names it: "LATIN", "CJK", "CYRILLIC"."""
    letter = unicodedata.normalize("NFKC", letter)[0]
    return (
        _NAMED_OTHERWISE.get(letter) or unicodedata.name(letter, "UNKNOWN").split()[0].split("-")[0]
    )
