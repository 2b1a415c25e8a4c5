"""Longer answers: a few sentences on each of fifty topics."""

import re
from dataclasses import dataclass
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker.checks import normalise_text
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini_2.thinker.topic_texts import TEXTS

COUNTS = {2: "two", 3: "three", 4: "four", 5: "five"}
ASKED = (
    *("Tell me about {}.", "Tell me something about {}.", "What do you know about {}?"),
    *("Explain {}.", "Describe {}.", "Can you explain {}?", "I want to know about {}."),
    *("Say something about {}.", "What can you tell me about {}?", "Talk about {}."),
    *("Can you tell me about {}?", "Please tell me about {}.", "Teach me about {}."),
)
COUNTED = (
    *("Tell me about {} in {} sentences.", "Explain {} in {} sentences."),
    *("Describe {} in {} sentences.", "Say something about {} in {} sentences."),
)


@dataclass(frozen=True)
class Topic:
    """A topic, a question that its text answers, and the text's sentences."""

    name: str
    question: str
    sentences: tuple[str, ...]


def _topic(block: str) -> Topic:
    name, question, text = (" ".join(part.split()) for part in block.split("|"))
    return Topic(name, question, tuple(re.split(r"(?<=[.!?]) ", text)))


TOPICS = tuple(map(_topic, TEXTS.split("\n\n")))


def topic(rng: Random, lexicon: Lexicon) -> Item:
    """Ask about a topic, sometimes for a number of sentences; the answer begins its text."""
    one = rng.choice(TOPICS)
    count = rng.choice((*COUNTS, *COUNTS, len(one.sentences)))
    if rng.random() < 0.35 and count in COUNTS:
        text = rng.choice(COUNTED).format(one.name, COUNTS[count])
    elif rng.random() < 0.4:
        text, count = _question(one, rng), len(one.sentences)
    else:
        text, count = rng.choice(ASKED).format(one.name), len(one.sentences)
    if rng.random() < 0.1:
        text = text.lower()
    words = normalise_text(one.sentences[0])
    answer = " ".join(one.sentences[:count])
    return Item("topic", text, answer, "contains", (words,), fixed=True)


def _question(one: Topic, rng: Random) -> str:
    before = rng.choice(("", "", "", "Can you tell me: ", "I wonder: ", "Please explain: "))
    inner = one.question[0].lower() + one.question[1:] if before else one.question
    return before + (inner if rng.random() < 0.8 else inner.rstrip("?"))
