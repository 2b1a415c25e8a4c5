"""Sentences that people say to each other, which no recipe of ours wrote.

They are lines of English small talk from the package `chatterbot-corpus` (BSD licence), one
sentence each: 4 to 12 words, no digits and no abbreviations, so that there is one way to say them.
"""

import re
from importlib.resources import files
from random import Random

import yaml

PACKAGE = "chatterbot_corpus"
TOPICS = ("conversations", "emotion", "food", "greetings", "health", "money", "sports")
FEWEST, MOST = 4, 12

_PLAIN = re.compile(r"[A-Za-z' ,.!?]+")
_ABBREVIATION = re.compile(r"[A-Z]{2}")
_END = re.compile(r"(?<=[.!?])\s+")


def everyday(count: int, seed: int) -> list[str]:
    """`count` sentences in an order that the seed decides.

    Raises `ModuleNotFoundError` without the package and `ValueError` for more than there are.
    """
    found = sorted({text for topic in TOPICS for text in _sentences(topic)})
    if count > len(found):
        raise ValueError(f"there are {len(found)} sentences, not {count}")
    return Random(seed).sample(found, count)


def _sentences(topic: str) -> list[str]:
    path = files(PACKAGE) / "data" / "english" / f"{topic}.yml"
    talks = yaml.safe_load(path.read_text(encoding="utf-8"))["conversations"]
    lines = (str(line).strip() for talk in talks for line in talk)
    return [text for line in lines for text in _END.split(line) if _fits(text)]


def _fits(text: str) -> bool:
    plain = _PLAIN.fullmatch(text) and not _ABBREVIATION.search(text)
    return bool(plain) and FEWEST <= len(text.split()) <= MOST
