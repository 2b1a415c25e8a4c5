"""The mixture of tasks: endless items of a split, which follow from the seed."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Literal

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker import arithmetic, chat, choices, text_tasks
from cookbook.ming_mini.thinker.items import Item, Split
from cookbook.ming_mini.thinker.picture_tasks import picture_items
from cookbook.ming_mini.thinker.speech_tasks import speech_items
from cookbook.ming_mini.thinker.training_tasks import (
    colour_of_thing,
    missing_media,
    sum_by_name,
    sum_in_words,
)

Kind = Literal["text", "picture", "speech", "film"]
KINDS: tuple[Kind, ...] = ("text", "picture", "speech")
"""The kinds of Ming-mini, which sees no films."""
Maker = Callable[[Random, Lexicon], Item]

TEXT: dict[Maker, float] = {
    text_tasks.repeat: 3,
    text_tasks.rephrase: 1.5,
    text_tasks.spell: 3,
    text_tasks.count: 2.5,
    text_tasks.compare: 2,
    arithmetic.sums: 5,
    arithmetic.word_problem: 6,
    choices.choice: 5,
    choices.option: 2,
    choices.yes_no: 2.5,
    choices.fact: 0.5,
    choices.kind: 0.5,
    chat.small_talk: 1,
    chat.decline: 1,
}
"""Text tasks and their shares."""

LESSONS: dict[Maker, float] = {
    sum_in_words: 3,
    sum_by_name: 1,
    colour_of_thing: 0.3,
    missing_media: 0.7,
}
"""Tasks for training alone, so that the measured tasks do not change."""

TASKS = (
    *("repeat", "rephrase", "spell", "count", "compare", "arithmetic"),
    *("word_problem_1", "word_problem_2", "choice", "option", "yes_no", "fact"),
    *("small_talk", "decline"),
    *("picture_colour", "picture_shape", "picture_count", "picture_where", "picture_yes_no"),
    *("picture_describe", "picture_read", "picture_choice", "transcribe", "spoken_question"),
    *("picture_find", "picture_at", "in_words", "nothing_there"),
)
TAUGHT_ONLY = ("fact", "picture_find", "picture_at", "in_words", "nothing_there")
"""The tasks without held-out items."""


def text_items(rng: Random, lexicon: Lexicon, lessons: bool = False) -> list[Item]:
    """Draw one text item of any task; `lessons` includes the tasks for training alone."""
    makers = TEXT | LESSONS if lessons else TEXT
    return [rng.choices(tuple(makers), tuple(makers.values()))[0](rng, lexicon)]


def _group(kind: Kind, rng: Random, lexicon: Lexicon, split: Split) -> list[Item]:
    if kind == "speech":
        return speech_items(rng, lexicon)
    makes = text_items if kind == "text" else picture_items
    return makes(rng, lexicon, lessons=split == "train")


def groups(kind: Kind, seed: int | str, lexicon: Lexicon, split: Split) -> Iterator[list[Item]]:
    """Yield groups of items that share their picture or clip, all of one split."""
    rng = Random(f"{kind} {seed}")
    while True:
        kept = [item for item in _group(kind, rng, lexicon, split) if item.split == split]
        if kept:
            yield kept
