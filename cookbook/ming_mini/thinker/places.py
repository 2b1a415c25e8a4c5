"""Questions about where things are in a drawn scene."""

from random import Random

from cookbook.ming_mini.thinker.asked import Asked, of, unique, yes_no
from cookbook.ming_mini.thinker.choices import article
from cookbook.ming_mini.thinker.scenes import CELLS, Scene

ROWS, COLUMNS = ("top", "middle", "bottom"), ("left", "middle", "right")
PLACES = tuple((row, column) for row in range(CELLS) for column in range(CELLS))
NOTHING, EMPTY_SHARE = "nothing", 0.2


def place(cell: tuple[int, int]) -> str:
    """The words for a cell."""
    row, column = ROWS[cell[0]], COLUMNS[cell[1]]
    if row == column:
        return "in the middle"
    if column == "middle":
        return f"at the {row}"
    return f"on the {column}" if row == "middle" else f"at the {row} {column}"


def where(scene: Scene, rng: Random) -> Asked | None:
    """Where a shape is that only colour and kind together tell from the others."""
    one = unique(scene, rng)
    return _seek(f"{one.colour} {one.shape}", one.cell, "picture_where", rng) if one else None


def find(scene: Scene, rng: Random) -> Asked | None:
    """Where a shape is that its kind alone tells from the others, or its colour.

    `where` asks two things at once, to find a token and to tell its place, and was not learnt by
    itself; this is the half of it.
    """
    named = [
        (name, one.cell)
        for one in scene.shapes
        for name, alike in (
            (one.shape, of(scene, shape=one.shape)),
            (f"{one.colour} shape", of(scene, colour=one.colour)),
        )
        if len(alike) == 1
    ]
    return _seek(*rng.choice(named), "picture_find", rng) if named else None


def _seek(name: str, cell: tuple[int, int], task: str, rng: Random) -> Asked:
    ask = rng.choice((f"Where is the {name}?", f"Where do you see the {name}?"))
    wrong = tuple(place(other) for other in PLACES if other != cell)
    return Asked(task, ask, place(cell), wrong)


def at(scene: Scene, rng: Random) -> Asked:
    """What is at a place, if anything; the other way round than `where`."""
    taken = {one.cell: one for one in scene.shapes}
    empty = [cell for cell in PLACES if cell not in taken]
    cell = rng.choice(empty if rng.random() < EMPTY_SHARE else sorted(taken))
    named = article(f"{taken[cell].colour} {taken[cell].shape}") if cell in taken else NOTHING
    others = {article(f"{one.colour} {one.shape}") for one in scene.shapes} - {named}
    ask = rng.choice((f"What is {place(cell)}?", f"What do you see {place(cell)}?"))
    return Asked("picture_at", ask, named, tuple(sorted(others)))


def beside(scene: Scene, rng: Random) -> Asked | None:
    """Whether one shape is above, below, left or right of another."""
    one, other = unique(scene, rng), unique(scene, rng)
    if one is None or other is None:
        return None
    axis = rng.randrange(2)
    if one.cell[axis] == other.cell[axis]:
        return None
    low, high = (("above", "below"), ("left of", "right of"))[axis]
    asked, before = (low, True) if rng.random() < 0.5 else (high, False)
    true = (one.cell[axis] < other.cell[axis]) == before
    ask = f"Is the {one.colour} {one.shape} {asked} the {other.colour} {other.shape}?"
    return yes_no(ask, true)
