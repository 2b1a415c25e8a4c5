"""Items are fresh, repeatable, apart and right."""

import re
from collections.abc import Iterator
from itertools import islice
from random import Random

import numpy as np
import pytest

from cookbook.ming_mini.thinker.arithmetic import ONE_STEP, TWO_STEPS, operands, solution, sums
from cookbook.ming_mini.thinker.checks import is_right
from cookbook.ming_mini.thinker.items import Item, Split
from cookbook.ming_mini.thinker.picture_tasks import picture_items, place, plural, shape_scene
from cookbook.ming_mini.thinker.scenes import COLOURS, FONTS, SHAPES, Lettering, Scene
from cookbook.ming_mini.thinker.speech_tasks import said
from cookbook.ming_mini.thinker.tasks import KINDS, TASKS, Kind, groups
from tests.cookbook.thinker.conftest import LEXICON


def items(kind: Kind, seed: int, split: Split = "train") -> Iterator[Item]:
    return (item for group in groups(kind, seed, LEXICON, split) for item in group)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_items(kind: Kind) -> None:
    first, again, other = (list(islice(items(kind, seed), 40)) for seed in (5, 5, 6))
    assert first == again and first != other


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_held_out_items_are_disjoint(kind: Kind) -> None:
    train = {item.key for item in islice(items(kind, 1), 1500)}
    held_out = {item.key for item in islice(items(kind, 2, "held_out"), 60)}
    assert held_out and not train & held_out


def test_a_sum_is_of_one_split_in_whatever_words_it_is_asked() -> None:
    held_out = {item.about for item in islice(items("text", 1, "held_out"), 150)}
    spoken = {item.about for item in islice(items("speech", 2), 500)}
    written = {item.about for item in islice(items("text", 3), 3000)}
    assert not held_out & (spoken | written) - {""}


def test_a_clip_is_of_one_split_with_all_that_is_asked_about_it() -> None:
    for split in ("train", "held_out"):
        stream = groups("speech", 4, LEXICON, split)
        found = [next(stream) for _ in range(30)]
        assert any(len(group) == 2 for group in found)
        assert all(len({item.speech for item in group}) == 1 for group in found)
        assert all(group[-1].task == "transcribe" for group in found)


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_passes_its_own_check_and_belongs_to_a_task(kind: Kind) -> None:
    found = list(islice(items(kind, 3), 800))
    assert all(is_right(item, item.answer) for item in found)
    assert {item.task for item in found} <= set(TASKS)


def test_every_task_is_made() -> None:
    found = {item.task for kind in KINDS for item in islice(items(kind, 4), 1500)}
    assert found == set(TASKS)


def test_sums_are_right_by_an_independent_reading() -> None:
    rng = Random(0)
    for _ in range(500):
        item = sums(rng, LEXICON)
        asked = re.search(r"[0-9][0-9 +*/-]*", item.question)
        assert asked
        assert is_right(item, str(int(eval(asked[0]))))


@pytest.mark.parametrize("story", ONE_STEP + TWO_STEPS, ids=lambda story: story.text[:40])
def test_stories_have_whole_results_from_zero_on(story) -> None:
    rng = Random(1)
    for _ in range(50):
        numbers = operands(rng, story.operations)
        results = re.findall(r"= (-?\d+)\.", solution(story.operations, numbers))
        assert len(results) == len(story.operations)
        assert all(int(result) >= 0 for result in results)
        assert f"{{{'abc'[len(numbers) - 1]}}}" in story.text


def test_counts_and_places_follow_from_the_scene() -> None:
    rng = Random(2)
    for item in (item for _ in range(300) for item in picture_items(rng, LEXICON)):
        scene = item.scene
        assert scene
        if item.task == "picture_count":
            what = item.question.split("How many ")[1].split(" are there")[0].split(" do you")[0]
            assert item.answer == f"{counted(scene, what)}."
        if item.task == "picture_where":
            named = item.question.rstrip("?").split("the ")[1]
            (one,) = [s for s in scene.shapes if f"{s.colour} {s.shape}" == named]
            assert item.answer.lower() == f"{place(one.cell)}."


def counted(scene: Scene, what: str) -> int:
    words = what.split()
    return sum(
        all(word in ("shapes", one.colour, plural(one.shape)) for word in words)
        for one in scene.shapes
    )


def test_shapes_stand_where_their_cells_are_and_in_their_colour() -> None:
    rng = Random(3)
    for _ in range(60):
        scene = shape_scene(rng)
        pixels = scene.draw()
        assert pixels.shape == (*scene.size, 3)
        for one in scene.shapes:
            y, x = (int(part) for part in scene.centre(one))
            assert (y * 3 // scene.size[0], x * 3 // scene.size[1]) == one.cell
            if one.shape != "ring":
                assert np.abs(pixels[y, x].astype(int) - COLOURS[one.colour]).max() <= 8


def test_a_scene_is_drawn_alike_every_time() -> None:
    scene = shape_scene(Random(4))
    assert np.array_equal(scene.draw(), scene.draw())


@pytest.mark.parametrize("font", FONTS)
def test_letters_are_drawn_where_their_marks_say(font: str) -> None:
    scene = Scene((128, 128), "white", (), Lettering("ab1", "black", font, 30, (40, 20)))
    ink = scene.draw().min(axis=2) < 120
    for mark in scene.marks():
        row, column = (int(part) for part in mark.place)
        assert ink[row - 14 : row + 14, column - 7 : column + 7].any()


def test_spoken_questions_hold_no_digits() -> None:
    assert said("What is 12 + 30?") == "What is twelve plus thirty?"
    assert said('Spell "cat".') == "Spell cat."
    spoken = [item.speech for item in islice(items("speech", 5), 300)]
    assert not [text for text in spoken if text is None or re.search(r"\d", text)]


def test_every_shape_has_a_name_and_a_picture() -> None:
    assert len(SHAPES) == len(set(SHAPES)) == 8
