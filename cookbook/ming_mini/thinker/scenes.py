"""Drawn pictures: coloured shapes in the cells of a grid, and words or numbers in several fonts."""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SHAPES = ("circle", "square", "triangle", "star", "arrow", "cross", "diamond", "ring")
COLOURS = {
    "red": (214, 32, 38),
    "blue": (38, 72, 210),
    "green": (34, 150, 60),
    "yellow": (246, 214, 32),
    "black": (16, 16, 18),
    "white": (252, 252, 252),
    "orange": (244, 132, 24),
    "purple": (132, 44, 160),
}
BACKGROUNDS = {"white": (250, 250, 248), "grey": (188, 190, 194), "cream": (238, 228, 200)}
UNSEEN_ON = {"white": ("white", "yellow"), "grey": (), "cream": ("white", "yellow")}
"""Colours that are hardly visible on a background."""
SIZES = ((128, 128), (192, 192), (160, 224), (224, 160), (256, 256))
"""Heights and widths in pixels, multiples of 32: no server resizes them."""
CELLS = 3
FONTS = (
    "DejaVuSans.ttf",
    "DejaVuSans-Bold.ttf",
    "DejaVuSerif.ttf",
    "DejaVuSerif-Bold.ttf",
    "DejaVuSansMono.ttf",
    "DejaVuSansMono-Bold.ttf",
)
SYSTEM_FONTS = Path("/usr/share/fonts/truetype/dejavu")


@dataclass(frozen=True)
class DrawnShape:
    """A shape in a cell (row, column), with size and offsets in pixels."""

    shape: str
    colour: str
    cell: tuple[int, int]
    size: int
    shift: tuple[int, int]


@dataclass(frozen=True)
class Lettering:
    """A word or number, with its top left corner and height in pixels."""

    text: str
    colour: str
    font: str
    pixels: int
    place: tuple[int, int]


@dataclass(frozen=True)
class Mark:
    """Something to recognise at a point (y, x): a shape's name or a character, and its colour."""

    name: str
    colour: str
    place: tuple[float, float]


@dataclass(frozen=True)
class Scene:
    """The content of a picture of `size` (height, width); `tint` varies the colours a little."""

    size: tuple[int, int]
    background: str
    shapes: tuple[DrawnShape, ...] = ()
    lettering: Lettering | None = None
    tint: int = 0

    @cached_property
    def key(self) -> str:
        """Return the content as text: what is where, but not every pixel."""
        shapes = sorted(f"{one.cell} {one.colour} {one.shape}" for one in self.shapes)
        text = self.lettering.text if self.lettering else ""
        return f"{self.background} {shapes} {text}"

    def draw(self) -> np.ndarray:
        """Draw the picture as uint8 [height, width, 3]."""
        rng = Random(self.tint)
        image = Image.new("RGB", self.size[::-1], _tinted(BACKGROUNDS[self.background], rng))
        pen = ImageDraw.Draw(image)
        for one in self.shapes:
            centre = self.centre(one)
            draw_shape(pen, one.shape, centre, one.size / 2, _tinted(COLOURS[one.colour], rng))
        if self.lettering:
            _draw_text(pen, self.lettering, _tinted(COLOURS[self.lettering.colour], rng))
        return np.asarray(image)

    def centre(self, one: DrawnShape) -> tuple[float, float]:
        """Return the centre (y, x) of a shape in pixels."""
        return tuple(  # type: ignore[return-value]
            (cell + 0.5) * side / CELLS + shift
            for cell, side, shift in zip(one.cell, self.size, one.shift, strict=True)
        )

    def marks(self) -> list[Mark]:
        """Return what a reader must recognise and where, with letters from left to right."""
        found = [Mark(one.shape, one.colour, self.centre(one)) for one in self.shapes]
        return found + (_letters(self.lettering) if self.lettering else [])


@cache
def font(name: str, pixels: int) -> ImageFont.FreeTypeFont:
    """Load a font of the set, from Debian's `fonts-dejavu` or else from matplotlib's data.

    Widths affect what is drawn next, so all machines must measure alike: with Pillow's basic
    layout, which is always available, and not with Raqm's, which needs a system library.
    """
    path = str(_font_folder() / name)
    return ImageFont.truetype(path, pixels, layout_engine=ImageFont.Layout.BASIC)


@cache
def _font_folder() -> Path:
    if SYSTEM_FONTS.is_dir():
        return SYSTEM_FONTS
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


def visible(background: str) -> list[str]:
    """Return the colours that are visible on a background."""
    return [colour for colour in COLOURS if colour not in UNSEEN_ON[background]]


def _tinted(colour: tuple[int, ...], rng: Random) -> tuple[int, ...]:
    return tuple(min(255, max(0, part + rng.randint(-8, 8))) for part in colour)


def _letters(text: Lettering) -> list[Mark]:
    top, left = text.place
    face, found = font(text.font, text.pixels), []
    for index, char in enumerate(text.text):
        before = face.getlength(text.text[:index])
        middle = left + before + face.getlength(char) / 2
        found.append(Mark(char.lower(), text.colour, (top + text.pixels * 0.6, middle)))
    return found


def _draw_text(pen: ImageDraw.ImageDraw, text: Lettering, colour: tuple[int, ...]) -> None:
    top, left = text.place
    pen.text((left, top), text.text, fill=colour, font=font(text.font, text.pixels))


def draw_shape(
    pen: ImageDraw.ImageDraw,
    shape: str,
    centre: tuple[float, float],
    radius: float,
    colour: tuple[int, ...],
) -> None:
    """Draw one of `SHAPES` around a centre (y, x)."""
    y, x = centre
    box = (x - radius, y - radius, x + radius, y + radius)
    match shape:
        case "circle":
            pen.ellipse(box, fill=colour)
        case "ring":
            pen.ellipse(box, outline=colour, width=max(3, round(radius / 3)))
        case "square":
            pen.rectangle(
                tuple(x + 0.1 * radius * s for x, s in zip(box, (1, 1, -1, -1), strict=True)),
                fill=colour,
            )
        case _:
            points = [(x + radius * px, y + radius * py) for px, py in OUTLINES[shape]]
            pen.polygon(points, fill=colour)


def _star() -> tuple[tuple[float, float], ...]:
    angles = [math.pi * (index / 5 - 0.5) for index in range(10)]
    reach = (1.0, 0.42)
    return tuple(
        (reach[index % 2] * math.cos(angle), reach[index % 2] * math.sin(angle))
        for index, angle in enumerate(angles)
    )


_THIRD = 0.32
OUTLINES: dict[str, tuple[tuple[float, float], ...]] = {
    "triangle": ((0, -1), (1, 0.85), (-1, 0.85)),
    "diamond": ((0, -1), (0.7, 0), (0, 1), (-0.7, 0)),
    "arrow": (
        *((-1, -_THIRD), (0.1, -_THIRD), (0.1, -0.85), (1, 0)),
        *((0.1, 0.85), (0.1, _THIRD), (-1, _THIRD)),
    ),
    "cross": (
        *((-_THIRD, -1), (_THIRD, -1), (_THIRD, -_THIRD), (1, -_THIRD), (1, _THIRD)),
        *((_THIRD, _THIRD), (_THIRD, 1), (-_THIRD, 1), (-_THIRD, _THIRD)),
        *((-1, _THIRD), (-1, -_THIRD), (-_THIRD, -_THIRD)),
    ),
    "star": _star(),
}
"""Outlines (x, y) around the origin, of radius 1."""
