"""Everyday things for pictures: how each is drawn, in parts, in a square of side 2."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Point = tuple[float, float]
Colour = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """A part of a thing: an ellipse or a polygon around `points` (x, y).

    An ellipse has the two corners of its box. `colour` is its own; without, it is that of the
    thing, times `shade`.
    """

    form: Literal["ellipse", "polygon"]
    points: tuple[Point, ...]
    colour: Colour | None = None
    shade: float = 1.0


def _ellipse(
    left: float, top: float, right: float, bottom: float, colour: Colour | None = None
) -> Part:
    return Part("ellipse", ((left, top), (right, bottom)), colour)


def _box(
    left: float, top: float, right: float, bottom: float, colour: Colour | None = None
) -> Part:
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    return Part("polygon", corners, colour)


def _shape(points: Sequence[Point], colour: Colour | None = None, shade: float = 1.0) -> Part:
    return Part("polygon", tuple(points), colour, shade)


DARK, BROWN, GREEN, GLASS, PALE = (
    (30, 30, 34),
    (110, 72, 40),
    (52, 120, 50),
    (180, 214, 236),
    (240, 236, 220),
)
THINGS: dict[str, tuple[Part, ...]] = {
    "ball": (_ellipse(-0.9, -0.9, 0.9, 0.9),),
    "cup": (
        Part("ellipse", ((0.3, -0.4), (1.0, 0.4))),
        _ellipse(0.45, -0.22, 0.85, 0.22, PALE),
        _shape(((-0.7, -0.7), (0.6, -0.7), (0.45, 0.8), (-0.55, 0.8))),
        _ellipse(-0.7, -0.85, 0.6, -0.55, PALE),
    ),
    "house": (
        _box(-0.75, -0.1, 0.75, 0.9, PALE),
        _shape(((-0.95, -0.1), (0, -0.9), (0.95, -0.1))),
        _box(-0.2, 0.3, 0.2, 0.9, BROWN),
        _box(0.35, 0.15, 0.62, 0.42, GLASS),
    ),
    "car": (
        _shape(((-0.95, 0.1), (-0.55, 0.0), (-0.3, -0.45), (0.4, -0.45), (0.65, 0.0), (0.95, 0.1),
                (0.95, 0.5), (-0.95, 0.5))),
        _shape(((-0.42, -0.02), (-0.22, -0.35), (0.33, -0.35), (0.5, -0.02)), GLASS),
        _ellipse(-0.75, 0.3, -0.25, 0.8, DARK),
        _ellipse(0.25, 0.3, 0.75, 0.8, DARK),
    ),
    "tree": (
        _box(-0.14, 0.2, 0.14, 0.95, BROWN),
        _ellipse(-0.8, -0.95, 0.8, 0.45),
    ),
    "apple": (
        _ellipse(-0.8, -0.55, 0.15, 0.9),
        _ellipse(-0.15, -0.55, 0.8, 0.9),
        _box(-0.06, -0.9, 0.06, -0.4, BROWN),
        _ellipse(0.05, -0.9, 0.5, -0.65, GREEN),
    ),
    "flower": (
        _box(-0.06, 0.1, 0.06, 0.95, GREEN),
        _ellipse(-0.3, -0.95, 0.3, -0.35), _ellipse(-0.3, -0.25, 0.3, 0.35),
        _ellipse(-0.65, -0.6, -0.05, 0.0), _ellipse(0.05, -0.6, 0.65, 0.0),
        _ellipse(-0.22, -0.52, 0.22, -0.08, (250, 220, 60)),
    ),
    "book": (
        _shape(((-0.8, -0.5), (0.8, -0.7), (0.8, 0.6), (-0.8, 0.8))),
        _shape(((-0.8, 0.8), (0.8, 0.6), (0.8, 0.72), (-0.8, 0.92)), PALE),
    ),
    "bottle": (
        _box(-0.14, -0.95, 0.14, -0.4),
        _shape(((-0.14, -0.45), (0.14, -0.45), (0.38, -0.1), (-0.38, -0.1))),
        _box(-0.38, -0.12, 0.38, 0.92),
        _box(-0.38, 0.15, 0.38, 0.5, PALE),
    ),
    "fish": (
        _ellipse(-0.9, -0.45, 0.5, 0.45),
        _shape(((0.35, 0.0), (0.95, -0.5), (0.95, 0.5))),
        _ellipse(-0.68, -0.2, -0.5, -0.02, PALE),
        _ellipse(-0.62, -0.15, -0.54, -0.07, DARK),
    ),
    "boat": (
        _shape(((-0.9, 0.3), (0.9, 0.3), (0.6, 0.8), (-0.6, 0.8)), BROWN),
        _box(-0.05, -0.9, 0.03, 0.3, DARK),
        _shape(((0.08, -0.85), (0.8, 0.15), (0.08, 0.15))),
    ),
    "chair": (
        _box(-0.6, -0.95, -0.42, 0.95), _box(0.42, 0.1, 0.6, 0.95),
        _box(-0.6, 0.0, 0.6, 0.22), _box(-0.6, -0.95, -0.3, 0.05),
    ),
}  # fmt: skip
"""Things by their names. They have no holes, so that any background shows them."""
