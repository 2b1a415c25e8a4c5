"""The mixture of tasks: endless items of a split, which follow from the seed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker import choices, text_tasks, training_tasks
from cookbook.ming_mini.thinker.curriculum import BOOST, Curriculum
from cookbook.ming_mini.thinker.items import Item, Split
from cookbook.ming_mini.thinker.picture_labels import NAMES
from cookbook.ming_mini.thinker.tasks import TASKS, Kind
from cookbook.ming_mini_2.thinker import (
    chatter,
    dialogs,
    facts,
    json_tasks,
    persona,
    sums,
    tool_tasks,
    topics,
    translation,
    verses,
    wordplay,
)
from cookbook.ming_mini_2.thinker.excluded import Excluded
from cookbook.ming_mini_2.thinker.film_tasks import film_items
from cookbook.ming_mini_2.thinker.objects import THINGS
from cookbook.ming_mini_2.thinker.picture_tasks import picture_items
from cookbook.ming_mini_2.thinker.spoken_texts import said_aloud

Maker = Callable[[Random, Lexicon], Item]


def in_words(maker: Maker) -> Maker:
    """Return a maker whose questions are written as they are said: numbers and signs in words.

    A question that is asked aloud is understood no better than the same words in writing, and of
    those that users say, most have their numbers in digits in all other texts.
    """

    def draw(rng: Random, lexicon: Lexicon) -> Item:
        item = maker(rng, lexicon)
        said = said_aloud(item)
        task = f"{item.task}_in_words"
        return replace(item, task=task, question=said.text, about=said.about)

    return draw


KINDS: tuple[Kind, ...] = ("text", "picture", "speech", "film")
SMALL_TALK: tuple[Maker, ...] = (persona.persona, persona.greeting)

TEXT: Mapping[str, Mapping[Maker, float]] = {
    "text": {
        text_tasks.repeat: 2,
        text_tasks.rephrase: 1,
        text_tasks.spell: 4,
        text_tasks.count: 3,
        text_tasks.explained_comparison: 4,
        choices.choice: 4,
        choices.option: 2,
        choices.explained_yes_no: 4,
        choices.fact: 0.7,
        choices.kind: 1,
        training_tasks.colour_of_thing: 0.4,
        training_tasks.missing_media: 0.6,
        translation.translation: 1,
        facts.known_fact: 3,
        wordplay.wordplay: 3,
        in_words(text_tasks.explained_comparison): 7,
        in_words(choices.explained_yes_no): 7,
        in_words(text_tasks.spell): 3,
    },
    "sums": {
        sums.sum_in_figures: 4,
        sums.sum_in_words: 4,
        sums.sum_by_name: 1.5,
        sums.story: 6,
        sums.reasoned: 1.5,
    },
    "talk": {
        persona.persona: 2,
        persona.greeting: 1.2,
        persona.refusal: 3,
        chatter.chatter: 2,
        verses.verse: 1.5,
        topics.topic: 4,
        dialogs.recall(SMALL_TALK): 2.5,
        dialogs.unknown: 0.3,
        dialogs.system_name: 0.7,
        dialogs.system_rule: 0.5,
    },
    "tools": {
        tool_tasks.tool_call: 4,
        tool_tasks.unusual_call: 2.5,
        tool_tasks.parallel_calls: 0.7,
        tool_tasks.tool_result: 2.5,
        tool_tasks.answer_beside_tools((*SMALL_TALK, sums.sum_in_figures, sums.sum_in_words)): 2,
        json_tasks.json_answer: 2.5,
    },
}
"""Text tasks by area, and their shares."""
MAKERS = {maker: share for area in TEXT.values() for maker, share in area.items()}
EARLIER: tuple[Maker, ...] = (*SMALL_TALK, persona.refusal, sums.sum_in_figures, text_tasks.count)
"""Tasks of the exchanges before a question."""

SEEN = ("describe", "colour", "count", "name", "yes_no")
NEW_TASKS = (
    *("persona", "refuse", "topic", "recall", "system", "translate", "sum_in_words"),
    *("story_in_words", "reasoned", "tool_call", "tool_result", "no_call", "json"),
    *("known_fact", "wordplay", "verse"),
    *("compare_in_words", "yes_no_in_words", "spell_in_words"),
    *(f"picture_single_{task}" for task in SEEN),
    *(f"picture_photo_{task}" for task in SEEN),
    *("picture_sign", "picture_places", "picture_some", "picture_option"),
    *("film_describe", "film_direction", "film_yes_no", "film_name", "film_colour"),
)
CURRICULUM = Curriculum(
    kinds=KINDS,
    tasks=(*TASKS, *NEW_TASKS),
    boosts={
        **BOOST,
        "picture_sign": 2.0,
        "picture_count": 2.0,
        "picture_places": 3.0,
        "picture_some": 3.0,
        "picture_option": 2.0,
        "compare_in_words": 2.0,
        "yes_no_in_words": 4.0,
        "tool_call": 2.0,
        "no_call": 1.5,
        "film_describe": 1.5,
        "picture_single_describe": 1.5,
    },
    marks=(*NAMES, *THINGS),
    max_tokens=896,
)


def text_item(rng: Random, lexicon: Lexicon) -> Item:
    """Draw one text item of any task."""
    return rng.choices(tuple(MAKERS), tuple(MAKERS.values()))[0](rng, lexicon)


def groups(
    kind: Kind, seed: int | str, lexicon: Lexicon, split: Split, excluded: Excluded
) -> Iterator[list[Item]]:
    """Yield groups of items that share their picture or film, all of one split.

    Clips come from a folder, see `clip_folder`.

    Raises:
        ValueError: The kind is speech.
    """
    if kind == "speech":
        raise ValueError("speech comes from a folder of clips")
    rng = Random(f"{kind} {seed}")
    while True:
        kept = select(_group(kind, rng, lexicon, split), split, excluded)
        if kept:
            yield kept


def select(items: list[Item], split: Split, excluded: Excluded) -> list[Item]:
    """Return the items of a split that are not excluded.

    A fixed phrase is trained always, and so never held out.
    """
    return [item for item in items if item.split == split and item not in excluded]


def _group(kind: Kind, rng: Random, lexicon: Lexicon, split: Split) -> list[Item]:
    if kind == "text":
        return [text_item(rng, lexicon)]
    if kind == "film":
        return list(film_items(rng, lexicon))
    found = picture_items(rng, lexicon, lessons=split == "train")
    varied = [replace(item, question=_american(item.question, rng)) for item in found]
    if split == "held_out":
        return varied
    # Clients put a picture before its question as often as behind it.
    return [replace(item, media_first=rng.random() < 0.5) for item in varied]


def _american(question: str, rng: Random) -> str:
    """Return a question, sometimes in American spelling."""
    return question.replace("colour", "color") if rng.random() < 0.3 else question


def earlier_item(rng: Random, lexicon: Lexicon, split: Split, excluded: Excluded) -> Item:
    """Draw an exchange to stand before a question, of the same split or a fixed phrase."""
    while True:
        item = rng.choice(EARLIER)(rng, lexicon)
        if (item.fixed or item.split == split) and item not in excluded:
            return item
