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
        text = rng.choice(_counted(one, COUNTS[count]))
    elif rng.random() < 0.4:
        text, count = _question(one, rng), len(one.sentences)
    else:
        text, count = rng.choice(ASKED).format(one.name), len(one.sentences)
    if rng.random() < 0.1:
        text = text.lower()
    words = normalise_text(one.sentences[0])
    answer = " ".join(one.sentences[:count])
    return Item("topic", text, answer, "contains", (words,), fixed=True)


def _counted(one: Topic, count: str) -> list[str]:
    """Return the ways to ask for a number of sentences."""
    explained = [text for text in reworded(one.question) if text.startswith("Explain")]
    return [
        *(form.format(one.name, count) for form in COUNTED),
        *(text.replace("Explain", f"Explain in {count} sentences") for text in explained),
    ]


def _question(one: Topic, rng: Random) -> str:
    before = rng.choice(("", "", "", "Can you tell me: ", "I wonder: ", "Please explain: "))
    asked = rng.choice((one.question, one.question, *reworded(one.question)))
    inner = asked[0].lower() + asked[1:] if before and asked.endswith("?") else asked
    if not asked.endswith("?"):
        return inner
    return before + (inner if rng.random() < 0.8 else inner.rstrip("?"))


REWORDED = (
    (r"How do you (.*)\?", r"How do I \1?"),
    (r"How do you (.*)\?", r"How can I \1?"),
    (r"How do you (.*)\?", r"Explain how to \1."),
    (r"What is (.*)\?", r"What's \1?"),
    (r"What is (.*)\?", r"Explain what \1 is."),
    (r"What are (.*)\?", r"Explain what \1 are."),
    (r"How does (.*) work\?", r"Explain how \1 works."),
    (r"How do (?!you)(.*)\?", r"Explain how \1."),
    (r"Why do (?!plants)(.*)\?", r"Explain why \1."),
    (r"Why do plants have flowers\?", r"Explain why plants have flowers."),
    (r"Why does it rain\?", r"Explain why it rains."),
    (r"Why is the (\w+) (\w+)\?", r"Explain why the \1 is \2."),
    (r"Why are (\w+) (\w+)\?", r"Explain why \1 are \2."),
)
"""Patterns of questions and other ways to ask them."""


def reworded(question: str) -> list[str]:
    """Return a question in other words, as far as there are any."""
    matches = ((re.fullmatch(pattern, question), other) for pattern, other in REWORDED)
    return [match.expand(other) for match, other in matches if match]
