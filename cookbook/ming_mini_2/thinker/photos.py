"""Renderings like photographs: one lit thing on a ground, with a shadow, blur and noise."""

from dataclasses import dataclass
from random import Random

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from cookbook.ming_mini.thinker.scenes import COLOURS, OUTLINES, SHAPES, DrawnShape, Scene
from cookbook.ming_mini_2.thinker.objects import THINGS, Colour, Part

OVERSAMPLING = 2
SURFACES = {
    "wood": ((150, 110, 70), 14.0),
    "grass": ((90, 140, 70), 26.0),
    "sand": ((206, 186, 140), 14.0),
    "stone": ((140, 140, 144), 18.0),
    "cloth": ((176, 178, 200), 6.0),
}
"""Colours of the ground and how rough it looks."""
WALLS = ((196, 214, 236), (222, 218, 208), (170, 178, 186), (232, 226, 198))
SHAPED = tuple(one for one in SHAPES if one in ("circle", "square", "triangle", "star", "diamond"))
BOXES: dict[str, tuple[Part, ...]] = {
    "circle": (Part("ellipse", ((-0.95, -0.95), (0.95, 0.95))),),
    "square": (Part("polygon", ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85))),),
    **{one: (Part("polygon", OUTLINES[one]),) for one in ("triangle", "star", "diamond")},
}


@dataclass(frozen=True)
class Photo(Scene):
    """A scene drawn with light and shade; `surface` is the ground, `tint` its seed."""

    surface: str = "wood"

    def draw(self) -> np.ndarray:
        """Draw the picture as uint8 [height, width, 3]."""
        rng = Random(self.tint)
        noise = np.random.default_rng(rng.randrange(2**32))
        height, width = (side * OVERSAMPLING for side in self.size)
        ground = self._ground(height, width, rng, noise)
        image = Image.fromarray(ground)
        for one in self.shapes:
            self._place(image, one, rng)
        small = image.resize(self.size[::-1], Image.Resampling.LANCZOS)
        if rng.random() < 0.5:
            small = small.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.9)))
        pixels = np.asarray(small, np.float32)
        pixels = pixels * _light(self.size, rng) + noise.normal(0, rng.uniform(0, 6), pixels.shape)
        return np.clip(np.round(pixels), 0, 255).astype(np.uint8)

    def _ground(
        self, height: int, width: int, rng: Random, noise: np.random.Generator
    ) -> np.ndarray:
        """Draw a wall above a surface with grain, both a little uneven."""
        colour, grain = SURFACES[self.surface]
        horizon = int(height * rng.uniform(0.2, 0.55))
        pixels = np.empty((height, width, 3), np.float32)
        pixels[:horizon] = rng.choice(WALLS)
        pixels[horizon:] = colour
        rough = noise.normal(0, grain, (height // 4 + 1, width // 4 + 1, 1))
        rough = rough.repeat(4, 0).repeat(4, 1)[:height, :width]
        rough[:horizon] *= 0.2
        return np.clip(pixels + rough, 0, 255).astype(np.uint8)

    def _place(self, image: Image.Image, one: DrawnShape, rng: Random) -> None:
        """Draw a thing with its shadow and its lit side."""
        y, x = (OVERSAMPLING * part for part in self.centre(one))
        radius = OVERSAMPLING * one.size / 2
        shadow = Image.new("L", image.size, 0)
        low = y + 0.9 * radius
        box = (x - radius, low - 0.22 * radius, x + 1.2 * radius, low + 0.22 * radius)
        ImageDraw.Draw(shadow).ellipse(box, fill=120)
        blurred = shadow.filter(ImageFilter.GaussianBlur(radius / 8 + 1))
        image.paste((20, 20, 24), (0, 0), blurred)
        mask = Image.new("L", image.size, 0)
        flat = image.copy()
        colour = _varied(COLOURS[one.colour], rng)
        for part in (BOXES | THINGS)[one.shape]:
            _draw_part(ImageDraw.Draw(flat), part, (x, y), radius, part.colour or colour)
            _draw_part(ImageDraw.Draw(mask), part, (x, y), radius, (255,))
        lit = _shade(np.asarray(flat, np.float32), (x, y), radius)
        image.paste(Image.fromarray(lit), (0, 0), mask)


def _varied(colour: Colour, rng: Random) -> Colour:
    return tuple(min(255, max(0, part + rng.randint(-14, 14))) for part in colour)


def _draw_part(
    pen: ImageDraw.ImageDraw,
    part: Part,
    centre: tuple[float, float],
    radius: float,
    colour: Colour,
) -> None:
    points = [(centre[0] + radius * x, centre[1] + radius * y) for x, y in part.points]
    fill = tuple(round(value * part.shade) for value in colour)
    fill_colour = fill if len(fill) > 1 else fill[0]
    if part.form == "ellipse":
        pen.ellipse([*points[0], *points[1]], fill=fill_colour)
    else:
        pen.polygon(points, fill=fill_colour)


def _shade(pixels: np.ndarray, centre: tuple[float, float], radius: float) -> np.ndarray:
    """Make the upper left of a thing lighter and the lower right darker."""
    rows, columns = np.ogrid[: pixels.shape[0], : pixels.shape[1]]
    toward = ((columns - centre[0]) + (rows - centre[1])) / (2 * radius)
    factor = np.clip(1.05 - 0.22 * toward, 0.75, 1.25)[..., None]
    return np.clip(pixels * factor, 0, 255).astype(np.uint8)


def _light(size: tuple[int, int], rng: Random) -> np.ndarray:
    """Return the light [height, width, 1] of a room: brighter on one side."""
    rows, columns = np.ogrid[: size[0], : size[1]]
    slope = rng.uniform(-0.12, 0.12), rng.uniform(-0.12, 0.12)
    change = slope[0] * (rows / size[0] - 0.5) + slope[1] * (columns / size[1] - 0.5)
    return (rng.uniform(0.85, 1.1) + change).astype(np.float32)[..., None]
