"""Labels of pictures for training: the content and the position of every token."""

from collections.abc import Sequence

import numpy as np

from cookbook.ming_mini.thinker.scenes import CELLS, COLOURS, SHAPES, Scene
from cookbook.ming_mini.thinker.shards import SLOTS
from sglang_omni.models.ming.media_rules import MERGE, PATCH

TOKEN_SIDE = PATCH * MERGE
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
NAMES = ("", *SHAPES, *CHARACTERS)
"""The possible contents of a slot; empty first."""
HUES = ("", *COLOURS)
MAX_BEFORE = 9


def mark_tokens(scene: Scene, names: Sequence[str] = NAMES) -> np.ndarray:
    """Return the numbers of what has its centre in each token, int8 [tokens, SLOTS + 1].

    The columns are up to SLOTS names from left to right, then the colour of the first. Tokens are
    row by row, like the encoder's features. `names` are all possible names, empty first.
    """
    height, width = (side // TOKEN_SIDE for side in scene.size)
    found = np.zeros((height, width, SLOTS + 1), np.int8)
    for mark in scene.marks():
        row, column = (int(part // TOKEN_SIDE) for part in mark.place)
        if not (0 <= row < height and 0 <= column < width):
            continue
        token = found[row, column]
        free = np.flatnonzero(token[:SLOTS] == 0)
        if len(free) == SLOTS:
            token[SLOTS] = HUES.index(mark.colour)
        if len(free):
            token[free[0]] = names.index(mark.name)
    return found.reshape(-1, SLOTS + 1)


def cell_tokens(size: tuple[int, ...]) -> np.ndarray:
    """Return the row and column of cells in which each token of a picture has its centre.

    `size` is (height, width). The result is int64 [tokens, 2], in the tokens' order.
    """
    height, width = (
        ((np.arange(side // TOKEN_SIDE) + 0.5) * TOKEN_SIDE * CELLS // side) for side in size
    )
    grid = np.meshgrid(height, width, indexing="ij")
    return np.stack(grid, axis=-1).astype(np.int64).reshape(-1, 2)
