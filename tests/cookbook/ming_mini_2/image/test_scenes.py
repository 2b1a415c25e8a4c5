"""Scenes, captions and edits: what they say is what is drawn, and the judge sees it."""

from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest

from cookbook.ming_mini_2.image.captions import caption, request
from cookbook.ming_mini_2.image.drawing import draw_picture
from cookbook.ming_mini_2.image.edits import EDITS, PictureEdit, draw_edit
from cookbook.ming_mini_2.image.examples import SHOWN_PROMPTS, stream_examples
from cookbook.ming_mini_2.image.judge import judge, judge_edit
from cookbook.ming_mini_2.image.scenes import (
    DIAMETERS,
    FREE,
    SIZES,
    TIDY,
    Arrangement,
    SceneContent,
    ShapeGroup,
    draw_content,
    join_groups,
    place,
)
from cookbook.ming_mini_2.thinker.excluded import Excluded
from tests.cookbook.ming_mini_2.image.conftest import NOTHING, Take

CIRCLE, SQUARES = ShapeGroup(1, "red", "circle"), ShapeGroup(2, "blue", "square")
GREEN, RING = replace(CIRCLE, colour="green"), replace(CIRCLE, shape="ring")
SCENE = SceneContent((CIRCLE, SQUARES), "above")


def edits(kind: str, count: int) -> list[PictureEdit]:
    rng = Random(kind)
    endless = (draw_edit(rng) for _ in range(10_000))
    return list(islice((edit for edit in endless if edit.kind == kind), count))


KINDS = ("recolour", "reshape", "remove", "add", "background")


@pytest.mark.parametrize("how", [FREE, TIDY])
@pytest.mark.parametrize("size", SIZES)
def test_a_drawn_scene_is_right(size: tuple[int, int], how: Arrangement) -> None:
    rng = Random(1)
    for _ in range(6):
        picture = place(draw_content(rng), size, rng, how)
        pixels = draw_picture(picture)
        assert pixels.shape == (*size, 3)
        assert judge(pixels, picture.content).problems == ()


@pytest.mark.parametrize("size", SIZES)
def test_a_tidy_scene_hardly_varies(size: tuple[int, int]) -> None:
    rng = Random(4)
    for _ in range(40):
        content = draw_content(rng)
        one, other = (place(content, size, Random(seed), TIDY).shapes for seed in (1, 2))
        for first, second in zip(one, other, strict=True):
            moved = max(abs(a - b) for a, b in zip(first.centre, second.centre, strict=True))
            assert moved <= 0.1 * max(size)


@pytest.mark.parametrize("how", [FREE, TIDY])
def test_shapes_lie_apart_and_within_the_picture(how: Arrangement) -> None:
    rng = Random(2)
    for _ in range(300):
        size = rng.choice(SIZES)
        shapes = place(draw_content(rng), size, rng, how).shapes
        for one in shapes:
            assert one.diameter in DIAMETERS
            for middle, side in zip(one.centre, size, strict=True):
                assert one.diameter / 2 - 1 <= middle <= side - one.diameter / 2 + 1
        for index, one in enumerate(shapes):
            for other in shapes[:index]:
                gaps = [abs(a - b) for a, b in zip(one.centre, other.centre, strict=True)]
                assert max(gaps) >= (one.diameter + other.diameter) / 2 - 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (replace(SCENE, groups=(GREEN, SQUARES)), "missing: 1 green circle"),
        (replace(SCENE, groups=(RING, SQUARES)), "missing: 1 red ring"),
        (replace(SCENE, groups=(CIRCLE, replace(SQUARES, count=3))), "missing: 1 blue square"),
        (replace(SCENE, groups=(CIRCLE, replace(SQUARES, count=1))), "too many: 1 blue square"),
        (replace(SCENE, groups=(SQUARES, CIRCLE)), "not above"),
        (replace(SCENE, relation="left of"), "not left of"),
        (replace(SCENE, background="grey"), "background white"),
    ],
)
def test_the_judge_tells_what_is_wrong(content: SceneContent, problem: str) -> None:
    # Seed 3 places the circle neither left nor right of both squares.
    pixels = draw_picture(place(SCENE, (256, 256), Random(3)))
    assert judge(pixels, SCENE).right
    assert problem in judge(pixels, content).problems


@pytest.mark.parametrize("spread", [0.0, 60.0])
def test_a_picture_of_nothing_is_wrong(spread: float) -> None:
    noise = np.random.default_rng(0).normal(0, spread, (8, 8, 3)).repeat(32, 0).repeat(32, 1)
    pixels = np.clip(200 + noise, 0, 255).astype(np.uint8)
    assert not judge(pixels, SCENE).right


def test_captions_say_the_content() -> None:
    found = {caption(SCENE, Random(seed)) for seed in range(60)}
    assert {"a red circle above two blue squares", "two blue squares below a red circle"} <= found
    assert all("a red circle" in text and "two blue squares" in text for text in found)
    grey = replace(SCENE, background="grey")
    assert all("grey background" in caption(grey, Random(seed)) for seed in range(10))
    assert request(SCENE, Random(5)) == request(SCENE, Random(5))


def test_a_pair_that_is_joined_by_and_has_one_content() -> None:
    one = join_groups(CIRCLE, SQUARES, "and", "white")
    assert one == join_groups(SQUARES, CIRCLE, "and", "white")
    assert one.key != SCENE.key


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_changes_what_it_says(kind: str) -> None:
    for edit in edits(kind, 4):
        before, after = draw_picture(edit.source), draw_picture(edit.target)
        assert judge_edit(after, edit).problems == (), edit.instruction
        assert not judge_edit(before, edit).right, edit.instruction


def test_an_edit_must_keep_the_rest() -> None:
    (edit,) = edits("recolour", 1)
    elsewhere = place(edit.target.content, edit.target.size, Random(8))
    assert judge(draw_picture(elsewhere), edit.target.content).right
    assert judge_edit(draw_picture(elsewhere), edit).problems == ("other things changed",)


def test_every_kind_of_edit_is_drawn() -> None:
    rng = Random(4)
    assert {draw_edit(rng).kind for _ in range(200)} == set(KINDS)
    assert len(KINDS) == len(EDITS)


def test_no_content_is_in_both_splits() -> None:
    rng = Random(6)
    contents = [draw_content(rng) for _ in range(3000)]
    held_out = {one.key for one in contents if one.split == "held_out"}
    assert not held_out & {one.key for one in contents if one.split == "train"}
    share = sum(one.split == "held_out" for one in contents) / len(contents)
    assert 0.02 < share < 0.1
    for example in islice(stream_examples("edit", 1, "train", NOTHING), 200):
        assert example.source is not None
        assert example.target.content.split == example.source.content.split == "train"
    for example in islice(stream_examples("edit", 1, "held_out", NOTHING), 20):
        assert example.target.content.split == "held_out"


def test_prompts_that_users_are_shown_are_not_trained(take: Take) -> None:
    shown = {example.text for example in take("draw", 40)}
    kept = stream_examples("draw", "tests", "train", Excluded(frozenset(shown)))
    assert not shown & {example.text for example in islice(kept, 200)}
    edits = islice(stream_examples("edit", "tests", "train", NOTHING), 2000)
    texts = {example.text for example in edits}
    assert "Make the circle green" in texts
    assert not texts & set(SHOWN_PROMPTS)


def test_a_change_of_other_colours_leaves_a_colour_as_it_is() -> None:
    (edit,) = edits("background", 1)
    before, after = draw_picture(edit.source), draw_picture(edit.target)
    y, x = edit.source.shapes[0].centre
    if edit.source.shapes[0].shape == "ring":
        x += edit.source.shapes[0].diameter // 2 - 3
    assert np.array_equal(before[y, x], after[y, x])
