"""What the pictures show: one or two groups of coloured shapes on a plain background.

A `SceneContent` is what a caption says; a `ShapePicture` also says where everything is. Pure
functions: equal seeds give equal pictures.
"""

from dataclasses import dataclass
from itertools import product
from random import Random

from cookbook.ming_mini.thinker.items import Split, split_of
from cookbook.ming_mini.thinker.scenes import BACKGROUNDS, SHAPES, visible

Size = tuple[int, int]
Point = tuple[int, int]
Box = tuple[float, float, float, float]
"""Top, left, bottom and right in pixels."""

SIZES: tuple[Size, ...] = ((256, 256), (192, 320), (320, 192))
"""Heights and widths: sizes of the resolution 256 which the vision encoder sees as they are."""
SIZE_SHARES = (6, 1, 1)
RELATIONS = ("above", "left of", "and")
"""How the first group lies to the second; with "and" it may lie anywhere, unless `TIDY`."""
MAX_COUNT = 4
COUNT_SHARES = (5, 3, 2, 2)
MAX_SHAPES = 2 * MAX_COUNT
DIAMETERS = tuple(range(28, 193, 4))
"""In pixels."""
PLAIN_SHARE = 0.6
"""Of the scenes, on the white background, which captions do not mention."""
SINGLE_SHARE = 0.35
"""Of the scenes, with one group."""
MARGIN = 0.06
"""Of a side, left free at each edge."""


@dataclass(frozen=True)
class ShapeGroup:
    """Equal shapes, for example two blue squares."""

    count: int
    colour: str
    shape: str


@dataclass(frozen=True)
class SceneContent:
    """One group, or two with a relation of `RELATIONS`, on a background.

    The order of two groups that are joined by "and" says nothing; it is that of `join_groups`.
    """

    groups: tuple[ShapeGroup, ...]
    relation: str = "and"
    background: str = "white"

    @property
    def key(self) -> str:
        """Return the content as text, the same for all captions that say the same."""
        named = [f"{one.count} {one.colour} {one.shape}" for one in self.groups]
        return f"{f' {self.relation} '.join(named)} on {self.background}"

    @property
    def split(self) -> Split:
        """Return the split, which follows from the content alone."""
        return split_of(f"drawn {self.key}")


@dataclass(frozen=True)
class PlacedShape:
    """A shape with its centre (y, x) and its diameter, one of `DIAMETERS`; `group` is its group."""

    shape: str
    colour: str
    centre: Point
    diameter: int
    group: int


@dataclass(frozen=True)
class ShapePicture:
    """A picture of `size` with all its shapes; `tint` varies its colours a little."""

    size: Size
    content: SceneContent
    shapes: tuple[PlacedShape, ...]
    tint: int


def join_groups(
    first: ShapeGroup, second: ShapeGroup, relation: str, background: str
) -> SceneContent:
    """Return the content of two groups."""
    pair = (first, second)
    if relation == "and":
        pair = tuple(sorted(pair, key=lambda one: (one.shape, one.colour, one.count)))  # type: ignore[assignment]
    return SceneContent(pair, relation, background)


def draw_content(rng: Random) -> SceneContent:
    """Draw what a picture shows."""
    plain = rng.random() < PLAIN_SHARE
    background = "white" if plain else rng.choice(tuple(BACKGROUNDS))
    first = draw_group(rng, background)
    if rng.random() < SINGLE_SHARE:
        return SceneContent((first,), background=background)
    second = draw_group(rng, background)
    while (second.colour, second.shape) == (first.colour, first.shape):
        second = draw_group(rng, background)
    return join_groups(first, second, rng.choice(RELATIONS), background)


def draw_group(rng: Random, background: str) -> ShapeGroup:
    """Draw a group that is visible on a background."""
    (count,) = rng.choices(range(1, MAX_COUNT + 1), COUNT_SHARES)
    return ShapeGroup(count, rng.choice(visible(background)), rng.choice(SHAPES))


def draw_size(rng: Random) -> Size:
    """Draw one of the sizes."""
    (size,) = rng.choices(SIZES, SIZE_SHARES)
    return size


@dataclass(frozen=True)
class Arrangement:
    """How much of a picture's layout is left to chance.

    `share` is what the first group has of a side, `diameter` of a cell of its grid; a shape lies
    at most `max_shift` of a cell off the middle. If not `any_layout`, grids and sides are fixed.
    """

    share: tuple[float, float]
    diameter: tuple[float, float]
    max_shift: float
    any_layout: bool


FREE = Arrangement((0.45, 0.55), (0.55, 0.85), 0.3, True)
TIDY = Arrangement((0.5, 0.5), (0.6, 0.75), 0.05, False)
"""Nearly all of it follows from the content.

One who learns to draw need not choose between layouts, halfway between which shapes come out twice
or mixed.
"""


def place(content: SceneContent, size: Size, rng: Random, how: Arrangement = FREE) -> ShapePicture:
    """Draw where the shapes of a content are."""
    boxes = _split_box(_inner_box(size), content, rng, how)
    shapes = tuple(
        shape
        for number, (group, box) in enumerate(zip(content.groups, boxes, strict=True))
        for shape in _place_group(group, number, box, rng, how)
    )
    return ShapePicture(size, content, shapes, rng.randrange(2**30))


def _inner_box(size: Size) -> Box:
    height, width = size
    top, left = MARGIN * height, MARGIN * width
    return top, left, height - top, width - left


def _split_box(box: Box, content: SceneContent, rng: Random, how: Arrangement) -> list[Box]:
    """Return a box for each group, as the relation says."""
    if len(content.groups) == 1:
        return [box]
    relation, swapped = content.relation, False
    top, left, bottom, right = box
    if relation == "and" and how.any_layout:
        relation, swapped = rng.choice(RELATIONS[:2]), rng.random() < 0.5
    elif relation == "and":
        relation = "above" if bottom - top > right - left else "left of"
    share = rng.uniform(*how.share)
    if relation == "above":
        middle = top + share * (bottom - top)
        halves = [(top, left, middle, right), (middle, left, bottom, right)]
    else:
        middle = left + share * (right - left)
        halves = [(top, left, bottom, middle), (top, middle, bottom, right)]
    return halves[::-1] if swapped else halves


def _place_group(
    group: ShapeGroup, number: int, box: Box, rng: Random, how: Arrangement
) -> list[PlacedShape]:
    """Place the shapes of a group in the cells of a grid, each a little off its middle."""
    top, left, bottom, right = box
    rows, columns = _choose_grid(group.count, bottom - top, right - left, rng, how.any_layout)
    height, width = (bottom - top) / rows, (right - left) / columns
    cell = min(height, width)
    diameter = _nearest_diameter(cell * rng.uniform(*how.diameter))
    room = how.max_shift * cell
    shift = [max(0.0, min((side - diameter) / 2, room)) for side in (height, width)]
    return [
        PlacedShape(
            group.shape,
            group.colour,
            (
                round(top + (row + 0.5) * height + rng.uniform(-shift[0], shift[0])),
                round(left + (column + 0.5) * width + rng.uniform(-shift[1], shift[1])),
            ),
            diameter,
            number,
        )
        for row, column in list(product(range(rows), range(columns)))[: group.count]
    ]


def _choose_grid(
    count: int, height: float, width: float, rng: Random, any_layout: bool
) -> tuple[int, int]:
    """Return rows and columns for some shapes: those with the largest cells, mostly or always."""
    grids = [(rows, -(-count // rows)) for rows in range(1, count + 1)]
    # No grid with an empty row.
    grids = [(rows, columns) for rows, columns in grids if (rows - 1) * columns < count]
    sizes = [min(height / rows, width / columns) for rows, columns in grids]
    if not any_layout:
        return grids[sizes.index(max(sizes))]
    # A cell must have room for the smallest shape.
    weights = [size**4 if size > DIAMETERS[0] else 0.0 for size in sizes]
    return rng.choices(grids, weights)[0]


def _nearest_diameter(wanted: float) -> int:
    fitting = [one for one in DIAMETERS if one <= wanted]
    return fitting[-1] if fitting else DIAMETERS[0]
