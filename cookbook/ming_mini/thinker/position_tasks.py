"""Questions about the positions of things in a drawn scene."""

from random import Random

from cookbook.ming_mini.thinker.choices import article
from cookbook.ming_mini.thinker.picture_question import (
    PictureQuestion,
    find_shapes,
    pick_unique_shape,
    yes_no_question,
)
from cookbook.ming_mini.thinker.scenes import CELLS, Scene

ROWS, COLUMNS = ("top", "middle", "bottom"), ("left", "middle", "right")
PLACES = tuple((row, column) for row in range(CELLS) for column in range(CELLS))
NOTHING, EMPTY_SHARE = "nothing", 0.2


def describe_cell(cell: tuple[int, int]) -> str:
    """Return the words for a cell."""
    row, column = ROWS[cell[0]], COLUMNS[cell[1]]
    if row == column:
        return "in the middle"
    if column == "middle":
        return f"at the {row}"
    return f"on the {column}" if row == "middle" else f"at the {row} {column}"


def where_is_unique_shape(scene: Scene, rng: Random) -> PictureQuestion | None:
    """Ask where a shape is that only colour and kind together identify."""
    one = pick_unique_shape(scene, rng)
    return _seek(f"{one.colour} {one.shape}", one.cell, "picture_where", rng) if one else None


def where_is_shape(scene: Scene, rng: Random) -> PictureQuestion | None:
    """Ask where a shape is that its kind or its colour alone identifies.

    `where_is_unique_shape` needs two abilities at once, to find a token and to name its place, and
    was not learned by itself. This task has only the second.
    """
    named = [
        (name, one.cell)
        for one in scene.shapes
        for name, alike in (
            (one.shape, find_shapes(scene, shape=one.shape)),
            (f"{one.colour} shape", find_shapes(scene, colour=one.colour)),
        )
        if len(alike) == 1
    ]
    return _seek(*rng.choice(named), "picture_find", rng) if named else None


def _seek(name: str, cell: tuple[int, int], task: str, rng: Random) -> PictureQuestion:
    ask = rng.choice((f"Where is the {name}?", f"Where do you see the {name}?"))
    wrong = tuple(describe_cell(other) for other in PLACES if other != cell)
    return PictureQuestion(task, ask, describe_cell(cell), wrong)


def shape_at_place(scene: Scene, rng: Random) -> PictureQuestion:
    """Ask what is at a place, if anything: the inverse of `where_is_unique_shape`."""
    taken = {one.cell: one for one in scene.shapes}
    empty = [cell for cell in PLACES if cell not in taken]
    cell = rng.choice(empty if rng.random() < EMPTY_SHARE else sorted(taken))
    named = article(f"{taken[cell].colour} {taken[cell].shape}") if cell in taken else NOTHING
    others = {article(f"{one.colour} {one.shape}") for one in scene.shapes} - {named}
    ask = rng.choice((f"What is {describe_cell(cell)}?", f"What do you see {describe_cell(cell)}?"))
    return PictureQuestion("picture_at", ask, named, tuple(sorted(others)))


def relative_position(scene: Scene, rng: Random) -> PictureQuestion | None:
    """Ask whether one shape is above, below, left or right of another."""
    one, other = pick_unique_shape(scene, rng), pick_unique_shape(scene, rng)
    if one is None or other is None:
        return None
    axis = rng.randrange(2)
    if one.cell[axis] == other.cell[axis]:
        return None
    low, high = (("above", "below"), ("left of", "right of"))[axis]
    asked, before = (low, True) if rng.random() < 0.5 else (high, False)
    true = (one.cell[axis] < other.cell[axis]) == before
    first, second = f"the {one.colour} {one.shape}", f"the {other.colour} {other.shape}"
    places = f"{first} is {describe_cell(one.cell)} and {second} {describe_cell(other.cell)}"
    return yes_no_question(f"Is {first} {asked} {second}?", true, f"{places}, so ")
