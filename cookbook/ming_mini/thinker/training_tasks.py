"""Text tasks for training alone: wordings that no measured item has."""

from dataclasses import replace
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker import arithmetic
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.picture_tasks import plural
from cookbook.ming_mini.thinker.scenes import COLOURS, SHAPES
from cookbook.ming_mini.thinker.speech_tasks import TRANSCRIBE, signs_in_words, spoken_form

ASKED_BY_NAME = {
    "+": ("Add {a} and {b}.", "What is the sum of {a} and {b}?", "What do {a} and {b} make?"),
    "-": ("Take {b} from {a}.", "Subtract {b} from {a}.", "What is left of {a} without {b}?"),
    "*": ("Multiply {a} by {b}.", "What is the product of {a} and {b}?"),
    "/": ("Divide {a} by {b}.", "How often does {b} go into {a}?"),
}
"""Sums by the names of their operations."""

_HUES = """
the sky blue; grass green; snow white; coal black; a banana yellow; blood red; the sea blue;
a tomato red; a lemon yellow; milk white; the night black; a leaf green; the sun yellow;
chocolate brown; an elephant grey; a frog green; a cherry red; salt white; a plum purple
"""
HUES = tuple(tuple(" ".join(pair.split()).rsplit(" ", 1)) for pair in _HUES.split(";"))
"""Things and their colours."""

NO_PICTURE, NO_RECORDING = "I see no picture.", "I hear no recording."
LOOK = ("What is in the picture?", "What do you see?", "Describe the picture.", "Read the word.")


def sum_in_words(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a sum or a story with its signs in words, or also all numbers."""
    item = rng.choice((arithmetic.sums, arithmetic.sums, arithmetic.word_problem))(rng, lexicon)
    text = rng.choice((spoken_form, signs_in_words))(item.question)
    return replace(item, task="in_words", question=text, about=item.key)


def sum_by_name(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a sum of one step by the name of its operation."""
    sign = rng.choice(tuple(ASKED_BY_NAME))
    a, b = arithmetic.operands(rng, sign)
    text = rng.choice(ASKED_BY_NAME[sign]).format(a=a, b=b)
    return Item(
        "in_words", text, arithmetic.solution(sign, (a, b)), "number", about=f"{a} {sign} {b}"
    )


def colour_of_thing(rng: Random, lexicon: Lexicon) -> Item:
    """Ask for the colour of a well-known thing."""
    thing, colour = rng.choice(HUES)
    ask = rng.choice((f"What colour is {thing}?", f"Which colour has {thing}?"))
    return Item("fact", ask, f"{colour.capitalize()}.", fixed=True)


def missing_media(rng: Random, lexicon: Lexicon) -> Item:
    """Ask about a picture or a recording that is missing."""
    if rng.random() < 0.3:
        return Item("nothing_there", rng.choice(TRANSCRIBE), NO_RECORDING, fixed=True)
    colour, shape = rng.choice(tuple(COLOURS)), rng.choice(tuple(SHAPES))
    ask = rng.choice(
        (
            *LOOK,
            f"What colour is the {shape}?",
            f"Where is the {colour} {shape}?",
            f"How many {colour} {plural(shape)} are there?",
            f"Which shape is {colour}?",
        )
    )
    return Item("nothing_there", ask, NO_PICTURE, fixed=True)
