"""Judge a picture by what it shows: connected areas of one colour, their shapes and places.

The rule, for a picture that should show a `SceneContent`:

* The background is the nearest colour of `BACKGROUNDS` to the median of the pixels at the edges.
* A thing is a connected area of at least `MIN_AREA` pixels that differ from the background and are
  nearest to one colour of `COLOURS`. Lines of up to two pixels are no things: edges are mixed.
* Its shape is that of `SHAPES` which covers it best, in the size and place of the area, if the
  common area is at least `MIN_OVERLAP` of both together.
* The picture is right if the background is, if the things are exactly those of the groups, and if
  every centre of the first group lies above (or left of) every centre of the second.

A changed picture must be right, and keep what the instruction does not change: of the pixels that
are the same in the drawings before and after, `MIN_KEPT` must have about the colour that they had.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import ndimage

from cookbook.ming_mini.thinker.scenes import BACKGROUNDS, COLOURS, SHAPES
from cookbook.ming_mini_2.image.drawing import draw_masks, draw_picture
from cookbook.ming_mini_2.image.edits import PictureEdit
from cookbook.ming_mini_2.image.scenes import SceneContent

MIN_AREA = 60
MIN_OVERLAP = 0.6
MIN_KEPT = 0.95
FOREGROUND_DISTANCE = 36.0
"""Between colours of 0 to 255, from which on a pixel is not of the background."""
SAME_DISTANCE = 48.0
HALF = 127
"""Of 255: how much of a pixel a shape covers at least, to have it."""
NEIGHBOURS = np.ones((3, 3), bool)
EDGE = 4
"""Pixels at each edge that show the background."""


@dataclass(frozen=True)
class FoundShape:
    """A thing in a picture, with its centre (y, x); `shape` is empty if it looks like none."""

    shape: str
    colour: str
    centre: tuple[float, float]


@dataclass(frozen=True)
class PictureVerdict:
    """What is wrong with a picture; nothing, if it is right."""

    problems: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Return whether the picture is right."""
        return not self.problems


def judge(pixels: np.ndarray, content: SceneContent) -> PictureVerdict:
    """Judge a picture, uint8 [height, width, 3]."""
    background = find_background(pixels)
    problems = []
    if background != content.background:
        problems.append(f"background {background}")
    shapes = find_shapes(pixels)
    found = Counter((one.colour, one.shape or "thing") for one in shapes)
    wanted = Counter({(one.colour, one.shape): one.count for one in content.groups})
    problems += [_count(thing, count, "missing") for thing, count in (wanted - found).items()]
    problems += [_count(thing, count, "too many") for thing, count in (found - wanted).items()]
    if not problems and not is_in_relation(shapes, content):
        problems.append(f"not {content.relation}")
    return PictureVerdict(tuple(problems))


def judge_edit(pixels: np.ndarray, edit: PictureEdit) -> PictureVerdict:
    """Judge a changed picture, uint8 [height, width, 3]."""
    problems = judge(pixels, edit.target.content).problems
    if measure_kept(pixels, edit) < MIN_KEPT:
        problems = (*problems, "other things changed")
    return PictureVerdict(problems)


def measure_kept(pixels: np.ndarray, edit: PictureEdit) -> float:
    """Return the share of what should stay that has about the same colour.

    Where something is added, only the other things must stay: the place is free.
    """
    before, after = (draw_picture(one).astype(float) for one in (edit.source, edit.target))
    kept = (before == after).all(-1)
    if edit.kind == "add":
        kept &= _distance(before, _edge_colour(before)) > FOREGROUND_DISTANCE
    same = np.linalg.norm(pixels.astype(float) - before, axis=-1) < SAME_DISTANCE
    return float(same[kept].mean()) if kept.any() else 1.0


def find_background(pixels: np.ndarray) -> str:
    """Return the name of the background."""
    colour = _edge_colour(pixels)
    return min(BACKGROUNDS, key=lambda name: float(np.linalg.norm(BACKGROUNDS[name] - colour)))


def find_shapes(pixels: np.ndarray) -> list[FoundShape]:
    """Return the things in a picture, uint8 [height, width, 3]."""
    values = pixels.astype(np.float32)
    background = _edge_colour(values)
    differs = _distance(values, background)
    palette = np.array(list(COLOURS.values()), np.float32)
    nearest = np.full(differs.shape, -1)
    shown = differs > FOREGROUND_DISTANCE
    nearest[shown] = np.linalg.norm(values[shown][:, None] - palette, axis=-1).argmin(-1)
    found = []
    for number, colour in enumerate(COLOURS):
        covered = differs > np.linalg.norm(palette[number] - background) / 2
        for area in _list_areas(nearest == number):
            # With the thin ends that the opening removed.
            whole = area | (ndimage.binary_dilation(area, NEIGHBOURS, 2) & covered)
            found.append(FoundShape(name_shape(whole), colour, _centre(whole)))
    return found


def _list_areas(mask: np.ndarray) -> list[np.ndarray]:
    """Return the connected areas of a mask that are large enough, without thin lines."""
    if mask.sum() < MIN_AREA:
        return []
    areas, count = ndimage.label(ndimage.binary_opening(mask, NEIGHBOURS), NEIGHBOURS)
    found = [areas == number for number in range(1, count + 1)]
    return [area for area in found if area.sum() >= MIN_AREA]


def name_shape(mask: np.ndarray) -> str:
    """Return the shape that covers an area best, or "" if none does; bool [height, width]."""
    area = _crop(mask)
    overlaps = {shape: _overlap(area, number) for number, shape in enumerate(SHAPES)}
    best = max(overlaps, key=lambda shape: overlaps[shape])
    return best if overlaps[best] >= MIN_OVERLAP else ""


def is_in_relation(shapes: list[FoundShape], content: SceneContent) -> bool:
    """Return whether the groups of a content lie as it says; all its shapes were found."""
    if len(content.groups) < 2 or content.relation == "and":
        return True
    axis = 0 if content.relation == "above" else 1
    first, second = (
        [one.centre[axis] for one in shapes if (one.colour, one.shape) == (g.colour, g.shape)]
        for g in content.groups
    )
    return max(first) < min(second)


def _count(thing: tuple[str, str], count: int, problem: str) -> str:
    return f"{problem}: {count} {' '.join(thing)}"


def _edge_colour(pixels: np.ndarray) -> np.ndarray:
    """Return the median colour of the edges."""
    inner = np.zeros(pixels.shape[:2], bool)
    inner[EDGE:-EDGE, EDGE:-EDGE] = True
    return np.median(pixels[~inner], axis=0)


def _distance(pixels: np.ndarray, colour: np.ndarray) -> np.ndarray:
    return np.linalg.norm(pixels - colour, axis=-1)


def _centre(mask: np.ndarray) -> tuple[float, float]:
    """Return the middle of an area's bounding box."""
    y, x = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    return (y[0] + y[-1]) / 2, (x[0] + x[-1]) / 2


def _crop(mask: np.ndarray) -> np.ndarray:
    """Return the part of a mask within its bounding box."""
    y, x = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    return mask[y[0] : y[-1] + 1, x[0] : x[-1] + 1]


def _overlap(area: np.ndarray, shape: int) -> float:
    """Return the common area of a thing and a shape of its size, as a share of both together."""
    model = min(_models(shape), key=lambda one: abs(max(one.shape) - max(area.shape)))
    height, width = (max(pair) for pair in zip(area.shape, model.shape, strict=True))
    one, other = (_centred(mask, height, width) for mask in (area, model))
    return float((one & other).sum() / (one | other).sum())


@cache
def _models(shape: int) -> tuple[np.ndarray, ...]:
    """Return the areas of a shape in all sizes."""
    return tuple(_crop(mask > HALF) for mask in draw_masks()[shape])


def _centred(mask: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return a mask in the middle of a larger one."""
    top, left = (height - mask.shape[0]) // 2, (width - mask.shape[1]) // 2
    larger = np.zeros((height, width), bool)
    larger[top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    return larger
