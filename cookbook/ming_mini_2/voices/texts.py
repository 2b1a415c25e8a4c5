"""The texts that the talker learns to say: those of Ming-mini, and more of everyday speech.

Sentences of the evaluation (`measurement.everyday_sentences`) are left out, whatever their case
and punctuation.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.numbers import number_words
from cookbook.ming_mini.sentences import FRIENDS, SPOKEN, Mix, Split, sentences
from cookbook.ming_mini_2.voices.contractions import shorten
from cookbook.ming_mini_2.voices.vocabulary import draw_vocabulary
from measurement.everyday_sentences import available_sentences
from measurement.pocketsphinx_recogniser import spoken_words

REASONS = (
    "because it is late", "since it rained all day", "so that we can leave early", "if you like",
    "because I was tired", "when you have time", "before it gets dark", "unless you mind",
    "although it is expensive", "as soon as we arrive", "while the shops are open", "for now",
)  # fmt: skip
FEELINGS = ("happy", "tired", "sorry", "afraid", "glad", "surprised", "hungry", "ready", "busy")
OFFERS = (
    "Would you like me to {verb} the {noun}?", "Let me know if I should {verb} it.",
    "I can {verb} the {noun} for you, {reason}.", "Shall we {verb} it together?",
    "I would be glad to help you with the {noun}.", "Which {noun} do you mean?",
)  # fmt: skip
NEWS = (
    "{name} told me about the {adjective} {noun} {reason}.",
    "I am {feeling} that you called, {name}.",
    "We were {feeling} {reason}, but the {noun} was {adjective}.",
    "{name} and I want to see the {noun} on the way home.",
    "It takes about {number} minutes to get to the {noun} from here.",
    "There were {number} people in front of the {noun} this morning.",
    "My neighbour has bought a {adjective} {noun} for his {other}.",
    "You don't have to {verb} the {noun} {reason}.",
)  # fmt: skip
EXPLANATIONS = (
    "A {noun} is useful when you need to {verb} something.",
    "First you {verb} the {noun}, and then you look for the {other}.",
    "The main reason is that the {noun} is {adjective}, and the {other} is not.",
    "For example, you could {verb} a {adjective} {noun} {reason}.",
    "In short, it depends on the {noun} and on how {adjective} the {other} is.",
    "Some people prefer the {noun}, while others would rather {verb} the {other}.",
)  # fmt: skip


def fill_template(templates: tuple[str, ...], rng: Random, lexicon: Lexicon) -> str:
    """Draw a template and fill it with everyday words."""
    common = slice(0, 900)
    return rng.choice(templates).format(
        noun=rng.choice(lexicon.nouns[common]),
        other=rng.choice(lexicon.nouns[common]),
        verb=rng.choice(lexicon.verbs[common]),
        adjective=rng.choice(lexicon.adjectives[common]),
        name=rng.choice(FRIENDS).capitalize(),
        reason=rng.choice(REASONS),
        feeling=rng.choice(FEELINGS),
        number=number_words(rng.randrange(2, 60)),
    )


def offer(rng: Random, lexicon: Lexicon) -> str:
    """Draw an offer or a question back, as an assistant says them."""
    return fill_template(OFFERS, rng, lexicon)


def news(rng: Random, lexicon: Lexicon) -> str:
    """Draw a sentence that someone tells a friend."""
    return fill_template(NEWS, rng, lexicon)


def explanation(rng: Random, lexicon: Lexicon) -> str:
    """Draw a sentence of a longer answer."""
    return fill_template(EXPLANATIONS, rng, lexicon)


MIX: Mix = (*SPOKEN, (offer, 8), (news, 14), (explanation, 12))
VOCABULARY_WEIGHT = 60
"""Of texts that have frequent words, beside those of `MIX`."""
SHORTENED_SHARE = 0.6
"""Of the texts, where there are frequent words."""


def draw_texts(
    seed: int, lexicon: Lexicon, split: Split = "train", frequent: Sequence[str] = ()
) -> Iterator[str]:
    """Yield texts of one split forever; they follow from the seed.

    With `frequent` words there are texts of those as well, and short forms ("I'm") in most texts:
    the talker learns from these. Without, texts are those that a thinker is tested with.
    """
    rng = Random(f"short forms {seed}")
    for text in sentences(seed, lexicon, split, _mix(frequent)):
        if frequent and rng.random() < SHORTENED_SHARE:
            text = shorten(text, rng)
        if not is_reserved(text):
            yield text


def _mix(frequent: Sequence[str]) -> Mix:
    def vocabulary(rng: Random, lexicon: Lexicon) -> str:
        return draw_vocabulary(rng, frequent)

    return (*MIX, (vocabulary, VOCABULARY_WEIGHT)) if frequent else MIX


def is_reserved(text: str) -> bool:
    """Return whether a text is one of the evaluation's everyday sentences."""
    return tuple(spoken_words(text)) in _reserved()


@cache
def _reserved() -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(spoken_words(text)) for text in available_sentences())
