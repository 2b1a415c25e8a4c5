"""Sums and word problems in figures, in words and by name, all answered with the same steps."""

from dataclasses import replace
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker import arithmetic, training_tasks
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.speech_tasks import signs_in_words, spoken_form
from cookbook.ming_mini_2.thinker.dialog import DialogItem, as_dialog
from cookbook.ming_mini_2.thinker.stories import own_story

ASKED = (
    *("What is {}?", "What's {}?", "How much is {}?", "Calculate {}.", "{}", "{} = ?", "{}?"),
    *("Can you tell me what {} is?", "Work out {}.", "Please calculate {}.", "{} is what?"),
    *("What does {} make?", "What does {} equal?", "Compute {}", "Tell me what {} is."),
)
MULTIPLY = ("*", "*", "x", "\u00d7")


def sum_in_figures(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a sum in figures and signs, with or without blanks around the signs."""
    item = arithmetic.sums(rng, lexicon)
    text = item.about.replace("*", rng.choice(MULTIPLY))
    if rng.random() < 0.2:
        text = text.replace(" ", "")
    return replace(item, question=_ask(text, rng))


def sum_in_words(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a sum whose signs, or also whose numbers, are words."""
    item = arithmetic.sums(rng, lexicon)
    text = signs_in_words(item.about)
    if rng.random() < 0.5:
        text = spoken_form(item.about).rstrip(".")
    return replace(item, task="sum_in_words", question=_ask(text, rng))


def sum_by_name(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a sum by the name of its operation: "add 3 and 4"."""
    item = training_tasks.sum_by_name(rng, lexicon)
    before = rng.choice(("", "", "", "Please ")) if item.question[0] in "ASTMD" else ""
    text = item.question
    text = before + (text[0].lower() + text[1:]) if before else text
    return replace(item, task="sum_in_words", question=text)


def story(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a word problem of one or two steps, its numbers in figures or in words."""
    item = rng.choice((arithmetic.word_problem, own_story))(rng, lexicon)
    if rng.random() < 0.3:
        text = spoken_form(item.question)
        return replace(item, task="story_in_words", question=text, about=item.question)
    return item


def _ask(text: str, rng: Random) -> str:
    asked = rng.choice(ASKED).format(text)
    asked = asked[0].upper() + asked[1:]
    return asked.lower() if rng.random() < 0.1 else asked


def reasoned(rng: Random, lexicon: Lexicon) -> DialogItem:
    """Draw a sum or a story with reasoning on: the steps are the reasoning."""
    maker = rng.choice((sum_in_figures, sum_in_words, story, story))
    item = maker(rng, lexicon)
    steps, answer = item.answer.split(" The answer is ")
    return as_dialog(
        item, task="reasoned", thinking=True, thought=steps, answer=f"The answer is {answer}"
    )
