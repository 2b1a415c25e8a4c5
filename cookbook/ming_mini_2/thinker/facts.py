"""Small knowledge: capitals, forms of words, animals, numbers that everybody knows."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker.choices import article
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini_2.thinker import fact_tables as tables

Asked = tuple[str, str]
"""A question and its answer."""
BEFORE = (
    "",
    "",
    "",
    "",
    "Can you tell me, ",
    "Please tell me, ",
    "Do you know, ",
    "Quick question: ",
)


def _row(table: Mapping[str, str], asked: Sequence[str], answer: str) -> Callable[[Random], Asked]:
    """Return a maker of questions about a row of a table, with {key} and {value} in all texts."""

    def draw(rng: Random) -> Asked:
        key = rng.choice(tuple(table))
        words = {"key": key, "value": table[key], "a_key": article(key)}
        said = answer.format(**words)
        return rng.choice(asked).format(**words), said[0].upper() + said[1:]

    return draw


MAKERS: tuple[tuple[Callable[[Random], Asked], float], ...] = (
    (
        _row(
            tables.CAPITALS,
            (
                *("What is the capital of {key}?", "What is the capital city of {key}?"),
                *("Which city is the capital of {key}?", "Name the capital of {key}."),
            ),
            "The capital of {key} is {value}.",
        ),
        2,
    ),
    (
        _row(
            tables.PLURALS,
            ("What is the plural of {key}?", 'What is the plural of "{key}"?', "Plural of {key}?"),
            "{value}.",
        ),
        1,
    ),
    (
        _row(
            tables.PAST,
            ("What is the past tense of {key}?", 'What is the past tense of "{key}"?'),
            "{value}.",
        ),
        1,
    ),
    (
        _row(
            tables.SOUNDS,
            (
                *("What does {a_key} say?", "What sound does {a_key} make?"),
                *("What does the {key} say?", "Which sound does {a_key} make?"),
            ),
            "{value}!",
        ),
        0.6,
    ),
    (
        _row(
            tables.YOUNG,
            ("What is a young {key} called?", "What is a baby {key} called?"),
            "{value}.",
        ),
        0.6,
    ),
    (_row(tables.COUNTED, ("How many {key}?",), "{value}."), 2),
    (
        _row(
            tables.COUNTRIES,
            (
                *("Which language do people speak in {key}?", "What language is spoken in {key}?"),
                "What do people speak in {key}?",
            ),
            "{value}.",
        ),
        0.6,
    ),
    (
        _row(
            tables.MONEY,
            ("What is the currency of {key}?", "What is the money of {key} called?"),
            "{value}.",
        ),
        0.6,
    ),
    (
        _row(
            tables.RHYMES,
            (
                *("What rhymes with {key}?", "Give me a word that rhymes with {key}."),
                *('What word rhymes with "{key}"?', "Find a rhyme for {key}."),
            ),
            "{value}.",
        ),
        0.8,
    ),
    (_row(tables.ASKED, ("{key}?",), "{value}."), 5),
)


def known_fact(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a question about something that everybody knows."""
    makers, shares = zip(*MAKERS, strict=True)
    question, answer = rng.choices(makers, shares)[0](rng)
    before = rng.choice(BEFORE)
    asked = before + (question[0].lower() + question[1:] if before else question)
    if rng.random() < 0.15:
        asked = asked.lower().rstrip("?.")
    elif rng.random() < 0.15:
        asked = asked.replace("colour", "color")
    return Item("known_fact", asked, answer, fixed=True)
