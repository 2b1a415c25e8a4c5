"""Items of every task: their answers are right by their own rules, and the splits are disjoint."""

import json
import re
from collections import defaultdict
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import get_args

import numpy as np
import pytest

from cookbook.ming_mini.thinker import chat, choices
from cookbook.ming_mini.thinker.checks import normalise_text
from cookbook.ming_mini.thinker.choices import IN_WORDS
from cookbook.ming_mini.thinker.items import Item, Split
from cookbook.ming_mini.thinker.picture_labels import mark_tokens
from cookbook.ming_mini.thinker.position_tasks import where_is_unique_shape
from cookbook.ming_mini.thinker.scenes import DrawnShape, Scene
from cookbook.ming_mini.thinker.tasks import Kind
from cookbook.ming_mini_2.thinker import (
    chatter,
    facts,
    persona,
    picture_tasks,
    stories,
    tool_tasks,
    topics,
)
from cookbook.ming_mini_2.thinker.dialog import DialogItem, answer_segments, answer_tokens
from cookbook.ming_mini_2.thinker.evaluation.ask import Reply, is_right_reply
from cookbook.ming_mini_2.thinker.excluded import Excluded
from cookbook.ming_mini_2.thinker.functions import FUNCTIONS, RESULTS, VALUES
from cookbook.ming_mini_2.thinker.tasks import CURRICULUM, KINDS, MAKERS, Maker, groups
from sglang_omni.models.ming.prompt.chat import Prompt
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.reasoning import ThinkTagParser
from sglang_omni.models.tool_calls import ToolCallParser
from sglang_omni.protocol.tools import ToolCall
from tests.cookbook.thinker.conftest import LEXICON

COUNTS: dict[Kind, int] = {"text": 1500, "picture": 120, "film": 20}
DRAWN = 40


def items_of(kind: Kind, excluded: Excluded, count: int) -> list[Item]:
    stream = groups(kind, 5, LEXICON, "train", excluded)
    return [item for items in islice(stream, count) for item in items]


def reply_of(item: Item) -> Reply:
    """Return the reply of a model that answers just as the item wants, as the product parses it."""
    text = str(Prompt(tuple(segment for segment in answer_segments(item) if segment)))
    reasoning, tools = ThinkTagParser(), ToolCallParser()
    parts = [*reasoning.push(text), *reasoning.finish()]
    answer = "".join(part for part in parts if isinstance(part, str))
    found = [*tools.push(answer), *tools.finish()]
    calls = tuple(
        (call.name, json.loads(call.arguments)) for call in found if isinstance(call, ToolCall)
    )
    return Reply("".join(part for part in found if isinstance(part, str)), calls)


@pytest.mark.parametrize("kind", tuple(COUNTS))
def test_every_answer_is_right_by_its_own_rule(kind: Kind, excluded: Excluded) -> None:
    for item in items_of(kind, excluded, COUNTS[kind]):
        assert item.task in CURRICULUM.tasks
        reply = reply_of(item)
        assert is_right_reply(item, reply), item
        assert not is_right_reply(item, Reply("Zzz.")), item


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__qualname__)
def test_answers_survive_the_tokenizer(
    maker: Maker, tokenizer: ThinkerTokenizer, chat_format: MingChatFormat
) -> None:
    for number in range(DRAWN):
        item = maker(Random(number), LEXICON)
        ids = answer_tokens(tokenizer, item)
        assert ids[-1] == tokenizer.token_id("<|role_end|>")
        text = b"".join(map(chat_format.tool_tokens.token_bytes, ids[:-1])).decode()
        assert text == str(Prompt(tuple(s for s in answer_segments(item) if s)))


@pytest.fixture(scope="module")
def chat_format(folder: Path) -> MingChatFormat:
    return MingChatFormat(folder)


def test_no_subject_is_in_both_splits(excluded: Excluded) -> None:
    keys = defaultdict[str, set[str]](set)
    for split in get_args(Split):
        for kind in COUNTS:
            stream = groups(kind, 9, LEXICON, split, excluded)
            for items in islice(stream, COUNTS[kind] // 4):
                keys[split] |= {item.key for item in items if not item.fixed}
    assert keys["held_out"]
    assert not keys["train"] & keys["held_out"]


def test_a_sum_is_held_out_in_every_wording(excluded: Excluded) -> None:
    sums = {"arithmetic", "sum_in_words", "no_call", "reasoned"}
    abouts = {
        split: {
            item.about
            for items in islice(groups("text", 2, LEXICON, split, excluded), 600)
            for item in items
            if item.task in sums and item.about
        }
        for split in ("train", "held_out")
    }
    assert abouts["held_out"]
    assert not abouts["train"] & abouts["held_out"]


def test_every_task_of_the_curriculum_is_drawn(excluded: Excluded) -> None:
    seen = {i.task for kind in COUNTS for i in items_of(kind, excluded, 4 * COUNTS[kind])}
    # Of clips, and of Ming-mini alone: `persona`, `refuse` and `sum_in_words` take their place.
    other = {"transcribe", "spoken_question", "decline", "in_words"}
    assert set(CURRICULUM.tasks) - seen == other
    assert set(CURRICULUM.boosts) <= set(CURRICULUM.tasks)
    assert set(COUNTS) | {"speech"} == set(KINDS)


def test_arguments_are_copied_from_the_user_and_fit_the_schema(excluded: Excluded) -> None:
    rng = Random(4)
    for _ in range(300):
        item = rng.choice((tool_tasks.tool_call, tool_tasks.unusual_call))(rng, LEXICON)
        (call,) = item.calls
        tool = next(tool for tool in item.tools if tool.name == call.name)
        arguments = json.loads(call.arguments)
        assert set(arguments) == set(tool.parameters["properties"])
        for name, value in arguments.items():
            assert str(value) in item.question
            kind = tool.parameters["properties"][name]["type"]
            assert kind == ("integer" if isinstance(value, int) else "string")
        assert len({tool.name for tool in item.tools}) == len(item.tools)


def test_json_answers_have_the_keys_and_kinds_of_their_schema(excluded: Excluded) -> None:
    items = [item for item in items_of("text", excluded, 1500) if item.task == "json"]
    assert items
    for item in items:
        assert isinstance(item, DialogItem)
        assert item.schema
        answer = json.loads(item.answer)
        assert list(answer) == item.schema["required"]
        for name, value in answer.items():
            kind = "integer" if isinstance(value, int) else "string"
            assert item.schema["properties"][name]["type"] == kind


def test_functions_use_only_values_that_exist() -> None:
    for function in FUNCTIONS:
        assert set(function.slots.values()) <= set(VALUES)
        assert set(function.result.values()) <= set(RESULTS)


def test_fifty_topics_have_three_to_six_sentences() -> None:
    assert len({topic.name for topic in topics.TOPICS}) == 50
    assert all(3 <= len(topic.sentences) <= 6 for topic in topics.TOPICS)
    item = topics.topic(Random(1), LEXICON)
    assert item.answer.count(".") >= 2


def test_a_fixed_question_has_one_answer() -> None:
    # A joke or a greeting may be answered in several ways, a fact in one.
    known = (chatter.chatter, facts.known_fact, choices.fact, persona.persona, topics.topic)
    answers = defaultdict[str, set[str]](set)
    for maker in known:
        for number in range(2000):
            item = maker(Random(number), LEXICON)
            # A topic has as many sentences as are asked for.
            first = item.answer.split(".")[0]
            answers[normalise_text(item.question)].add(normalise_text(first))
    assert len(answers) > 1500
    assert {asked: found for asked, found in answers.items() if len(found) > 1} == {}


def test_what_ming_mini_declines_is_refused_but_for_poems_and_known_capitals() -> None:
    asked = {one.asked for one in persona.REFUSALS}
    declined = {line for line, _ in chat.REFUSED}
    assert declined - asked == {
        "Write a poem about a {thing}",
        "What is the capital of {place}?",
    }


def test_pictures_of_one_thing_mark_it(excluded: Excluded) -> None:
    for item in items_of("picture", excluded, 60):
        assert item.scene
        pixels, marks = item.scene.draw(), mark_tokens(item.scene, CURRICULUM.marks)
        assert pixels.shape == (*item.scene.size, 3)
        assert pixels.dtype == np.uint8
        assert pixels.std() > 1
        if item.task.startswith(("picture_single", "picture_photo")):
            (name,) = (CURRICULUM.marks[n] for n in marks[:, :3].ravel() if n)
            assert name == item.scene.shapes[0].shape


@pytest.mark.parametrize(
    ("question", "other"),
    [
        ("How do you make tea?", "How do I make tea?"),
        ("Why does it rain?", "Explain why it rains."),
        ("Why is the sea salty?", "Explain why the sea is salty."),
        ("Why are bees important?", "Explain why bees are important."),
        ("Why do ships float?", "Explain why ships float."),
        ("What is wind?", "Explain what wind is."),
    ],
)
def test_questions_about_topics_are_asked_in_several_ways(question: str, other: str) -> None:
    assert question in {topic.question for topic in topics.TOPICS}
    assert other in topics.reworded(question)


def test_a_reworded_question_keeps_its_grammar() -> None:
    said = [text for topic in topics.TOPICS for text in topics.reworded(topic.question)]
    assert len(said) > 50
    # "Explain why do we sleep." is no English.
    assert not any(re.search(r"Explain \w+ (do|does|is|are) ", text) for text in said)


def test_an_answer_with_places_tells_the_place_of_every_shape() -> None:
    scene = Scene(
        (96, 96),
        "white",
        (
            DrawnShape("circle", "red", (2, 1), 20, (0, 0)),
            DrawnShape("arrow", "orange", (0, 2), 20, (0, 0)),
            DrawnShape("square", "blue", (1, 1), 20, (0, 0)),
        ),
    )
    assert picture_tasks.places(scene) == (
        "an orange arrow at the top right, a blue square in the middle "
        "and a red circle at the bottom"
    )


def test_places_are_asked_of_shapes_that_differ(excluded: Excluded) -> None:
    asked = [one for one in items_of("picture", excluded, 400) if one.task == "picture_places"]
    assert len(asked) > 20
    for item in asked:
        assert item.scene is not None
        shown = [(one.colour, one.shape) for one in item.scene.shapes]
        assert len(set(shown)) == len(shown)
        assert all(f"{colour} {shape}" in item.answer.lower() for colour, shape in shown)


def test_most_shapes_of_a_crowded_scene_have_look_alikes() -> None:
    alike = []
    for number in range(100):
        shapes = picture_tasks.crowded_scene(Random(number)).shapes
        pairs = [(one.colour, one.shape) for one in shapes]
        assert 3 <= len(shapes) == len(set(pairs)) == len({one.cell for one in shapes})
        for colour, shape in pairs:
            alike.append(sum((c == colour) != (s == shape) for c, s in pairs))
    assert sum(count > 1 for count in alike) > 0.7 * len(alike)


def test_places_of_some_shapes_are_those_of_their_colour_or_kind() -> None:
    scene = Scene(
        (96, 96),
        "white",
        (
            DrawnShape("circle", "red", (2, 1), 20, (0, 0)),
            DrawnShape("arrow", "red", (0, 2), 20, (0, 0)),
            DrawnShape("square", "blue", (1, 1), 20, (0, 0)),
        ),
    )
    asked = picture_tasks.places_of_some(scene, Random(0))
    assert asked is not None
    assert "red shapes" in asked.question
    assert asked.right == "a red arrow at the top right and a red circle at the bottom"
    assert picture_tasks.places_of_some(replace(scene, shapes=scene.shapes[1:]), Random(0)) is None


def test_a_choice_in_words_is_one_of_those_shown() -> None:
    for number in range(40):
        scene = picture_tasks.crowded_scene(Random(number))
        asked = where_is_unique_shape(scene, Random(number))
        assert asked is not None
        item = picture_tasks.option_item(asked, scene, Random(number))
        *shown, instruction = item.question.split("\n")[1:]
        assert instruction == IN_WORDS
        assert item.answer in [line.partition(". ")[2] for line in shown]


def test_lessons_are_for_training_alone(excluded: Excluded) -> None:
    lessons = {"picture_at", "picture_find", "picture_some", "picture_option"}
    for split in ("train", "held_out"):
        drawn = islice(groups("picture", 4, LEXICON, split, excluded), 150)
        items = [item for items in drawn for item in items]
        assert bool({item.task for item in items} & lessons) == (split == "train")
        before = sum(item.media_first for item in items) / len(items)
        assert abs(before - (0.5 if split == "train" else 0.72)) < 0.1


def test_questions_in_words_are_those_that_are_said(excluded: Excluded) -> None:
    found = [item for item in items_of("text", excluded, 600) if item.task.endswith("_in_words")]
    own = [item for item in found if item.task in ("compare_in_words", "yes_no_in_words")]
    assert len(own) > 20
    assert not any(char.isdigit() or char == '"' for item in own for char in item.question)


def test_own_stories_use_every_verb_and_operation() -> None:
    items = [stories.own_story(Random(number), LEXICON) for number in range(600)]
    texts = " ".join(item.question for item in items)
    assert all(use in texts for use, _ in stories.USES)
    assert "{" not in texts
    for sign in "+-*/":
        assert any(f" {sign} " in item.answer for item in items)
