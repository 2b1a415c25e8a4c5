"""Find the words of a text in scripts that the checkpoint does not speak."""

import re
import unicodedata
from collections.abc import Container, Iterator
from functools import cache
from itertools import islice

# First words of Unicode character names, and the characters that a pattern can skip quickly.
LATIN = ("LATIN", "A-Za-z\u00aa-\u024f\u1e00-\u1eff")
HAN = ("CJK", "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff")
SCRIPTS_BY_LANGUAGE = {"en": (LATIN,), "zh": (HAN, LATIN)}
# Han characters are in many blocks, but all have such names, except these.
_SCRIPT_OVERRIDES = {"\u3005": "CJK", "\u3006": "CJK", "\u3007": "CJK"}


def find_unspoken_words(
    text: str, languages: tuple[str, ...], limit: int = 3, lexicon: Container[str] = ()
) -> list[str]:
    """Return up to `limit` words of `text` in scripts that none of the languages uses.

    A single Greek letter is a symbol, not a word; a word of the `lexicon` is spoken. Languages are
    ISO 639-1 codes. If one is unknown, its script is too, and nothing is returned; likewise if
    there are none.
    """
    if not languages or not set(languages) <= SCRIPTS_BY_LANGUAGE.keys():
        return []
    known = {script for language in languages for script, _ in SCRIPTS_BY_LANGUAGE[language]}
    words = (
        word
        for run in _compile_other_runs(languages).finditer(text)
        for word in _iter_words(run[0], known)
        if word not in lexicon and word.lower() not in lexicon
    )
    return list(islice(words, limit))


def drop_unspoken_words(text: str, languages: tuple[str, ...], lexicon: Container[str] = ()) -> str:
    """Return `text` without the words that `find_unspoken_words` finds."""
    for word in find_unspoken_words(text, languages, len(text), lexicon):
        text = text.replace(word, " ", 1)
    return text


@cache
def _compile_other_runs(languages: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for letters beyond the common ones; it scans a book in milliseconds."""
    common = "".join(
        dict.fromkeys(chars for language in languages for _, chars in SCRIPTS_BY_LANGUAGE[language])
    )
    return re.compile(rf"[^\W\d_{common}]+")


def _iter_words(run: str, known: set[str]) -> Iterator[str]:
    """Yield the words in a run of letters that are in none of the `known` scripts."""
    word = ""
    for character in f"{run} ":
        if character.isalpha() and get_script(character) not in known:
            word += character
            continue
        if word and not _is_symbol(word):
            yield word
        word = ""


def _is_symbol(word: str) -> bool:
    return len(word) == 1 and get_script(word) == "GREEK"


def get_script(letter: str) -> str:
    """Return the script of a letter as Unicode names it: "LATIN", "CJK", "CYRILLIC"."""
    letter = unicodedata.normalize("NFKC", letter)[0]
    return (
        _SCRIPT_OVERRIDES.get(letter)
        or unicodedata.name(letter, "UNKNOWN").split()[0].split("-")[0]
    )
