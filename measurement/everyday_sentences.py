"""Everyday sentences, which are not from the recipe's own templates.

They are lines of English small talk from the package `chatterbot-corpus` (BSD licence), one
sentence each: 4 to 12 words, no digits and no abbreviations, so that there is one way to say them.
"""

import re
from collections.abc import Sequence
from importlib.resources import files
from random import Random

import yaml

PACKAGE = "chatterbot_corpus"
TOPICS = ("conversations", "emotion", "food", "greetings", "health", "money", "sports")
MIN_WORDS, MAX_WORDS = 4, 12

_PLAIN = re.compile(r"[A-Za-z' ,.!?]+")
_ABBREVIATION = re.compile(r"[A-Z]{2}")
_END = re.compile(r"(?<=[.!?])\s+")


def sample_sentences(count: int, seed: int) -> list[str]:
    """Return `count` sentences, in an order that follows from the seed.

    Raises:
        ModuleNotFoundError: The package `chatterbot-corpus` is not installed.
        ValueError: There are fewer than `count` sentences.
    """
    available = available_sentences()
    if count > len(available):
        raise ValueError(f"there are {len(available)} sentences, not {count}")
    return Random(seed).sample(available, count)


def available_sentences(topics: Sequence[str] = TOPICS) -> list[str]:
    """Return every sentence of these topics, sorted.

    Raises:
        ModuleNotFoundError: The package `chatterbot-corpus` is not installed.
    """
    return sorted({text for topic in topics for text in _sentences(topic)})


def _sentences(topic: str) -> list[str]:
    path = files(PACKAGE) / "data" / "english" / f"{topic}.yml"
    dialogs = yaml.safe_load(path.read_text(encoding="utf-8"))["conversations"]
    lines = (str(line).strip() for dialog in dialogs for line in dialog)
    return [text for line in lines for text in _END.split(line) if _fits(text)]


def _fits(text: str) -> bool:
    plain = _PLAIN.fullmatch(text) and not _ABBREVIATION.search(text)
    return bool(plain) and MIN_WORDS <= len(text.split()) <= MAX_WORDS
