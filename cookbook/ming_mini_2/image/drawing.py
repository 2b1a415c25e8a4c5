"""Draw many pictures at once: masks of all shapes in all sizes, laid over each other.

The masks are drawn once, by the pen of Ming-mini's scenes, with smooth edges. A picture is a few
numbers, so that a training draws what it needs on its device.
"""

from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from cookbook.ming_mini.thinker.scenes import BACKGROUNDS, COLOURS, SHAPES, draw_shape
from cookbook.ming_mini_2.image.scenes import DIAMETERS, MAX_SHAPES, ShapePicture, Size

OVERSAMPLING = 4
SIDE = DIAMETERS[-1] + 4
"""Pixels of a side of a mask."""
TINT = 4
"""How much each part of a colour varies, of 255."""
NO_SHAPE = -1


@dataclass(frozen=True)
class PictureArrays:
    """N pictures of one size as numbers.

    `placed` int16 [N, MAX_SHAPES, 4] has the number of each shape (`NO_SHAPE` for none), of its
    diameter, and its centre (y, x). `colours` uint8 [N, 1 + MAX_SHAPES, 3] has the background's
    first.
    """

    placed: np.ndarray
    colours: np.ndarray

    def __len__(self) -> int:
        return len(self.placed)


def encode_pictures(pictures: list[ShapePicture]) -> PictureArrays:
    """Return pictures as arrays; a group's shapes are drawn in order, the last on top."""
    placed = np.full((len(pictures), MAX_SHAPES, 4), 0, np.int16)
    placed[..., 0] = NO_SHAPE
    colours = np.zeros((len(pictures), 1 + MAX_SHAPES, 3), np.uint8)
    for number, picture in enumerate(pictures):
        background = picture.content.background
        colours[number, 0] = vary_colour(BACKGROUNDS[background], background, picture.tint)
        for index, one in enumerate(picture.shapes):
            shape, size = SHAPES.index(one.shape), DIAMETERS.index(one.diameter)
            placed[number, index] = (shape, size, *one.centre)
            colour = vary_colour(COLOURS[one.colour], one.colour, picture.tint)
            colours[number, 1 + index] = colour
    return PictureArrays(placed, colours)


def vary_colour(colour: tuple[int, ...], name: str, tint: int) -> tuple[int, ...]:
    """Return a colour as a picture shows it; a change of other colours leaves it the same."""
    rng = Random(f"{tint} {name}")
    return tuple(min(255, max(0, part + rng.randint(-TINT, TINT))) for part in colour)


@cache
def draw_masks() -> np.ndarray:
    """Return how much of each pixel each shape covers: uint8 [shapes, diameters, SIDE, SIDE].

    The centre of a shape is the middle of its mask.
    """
    masks = [[_draw_mask(shape, diameter) for diameter in DIAMETERS] for shape in SHAPES]
    return np.array(masks)


def _draw_mask(shape: str, diameter: int) -> np.ndarray:
    large = Image.new("L", (SIDE * OVERSAMPLING, SIDE * OVERSAMPLING), 0)
    middle = SIDE * OVERSAMPLING / 2
    radius = diameter * OVERSAMPLING / 2
    draw_shape(ImageDraw.Draw(large), shape, (middle, middle), radius, (255,))
    return np.asarray(large.reduce(OVERSAMPLING))


class PictureDrawer:
    """Draws pictures on a device."""

    def __init__(self, device: torch.device) -> None:
        self._masks = torch.from_numpy(draw_masks()).to(device)

    def draw(self, placed: Tensor, colours: Tensor, size: Size) -> Tensor:
        """Return pictures [N, height, width, 3], float32 from 0 to 255.

        Args:
            placed: As in `PictureArrays`, on the device.
            colours: As in `PictureArrays`, on the device.
            size: Height and width of the pictures.
        """
        height, width = size
        shades = colours.float()
        canvas = shades[:, 0, None, None].expand(-1, height, width, -1)
        for slot in range(placed.shape[1]):
            cover = self._cover(placed[:, slot].long(), size)[..., None]
            canvas = torch.lerp(canvas, shades[:, 1 + slot, None, None], cover)
        return canvas.round()

    def _cover(self, placed: Tensor, size: Size) -> Tensor:
        """Return how much of each pixel a shape covers: [N, height, width] from 0 to 1."""
        shape, diameter, *centre = placed.unbind(1)
        inside, indices = [], []
        for middle, side in zip(centre, size, strict=True):
            index = torch.arange(side, device=placed.device) - middle[:, None] + SIDE // 2
            inside.append((index >= 0) & (index < SIDE))
            indices.append(index.clamp(0, SIDE - 1))
        mask = self._masks[
            shape.clamp_min(0)[:, None, None],
            diameter[:, None, None],
            indices[0][:, :, None],
            indices[1][:, None, :],
        ]
        drawn = inside[0][:, :, None] & inside[1][:, None, :] & (shape >= 0)[:, None, None]
        return mask.float() / 255 * drawn


def draw_picture(picture: ShapePicture) -> np.ndarray:
    """Return one picture, uint8 [height, width, 3]."""
    arrays = encode_pictures([picture])
    placed, colours = (torch.from_numpy(one) for one in (arrays.placed, arrays.colours))
    drawer = _cpu_drawer()
    return drawer.draw(placed, colours, picture.size)[0].to(torch.uint8).numpy()


@cache
def _cpu_drawer() -> PictureDrawer:
    return PictureDrawer(torch.device("cpu"))
