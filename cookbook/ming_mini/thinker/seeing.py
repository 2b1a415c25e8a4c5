"""Pictures for training: what every token of a picture shows."""

import numpy as np

from cookbook.ming_mini.thinker.scenes import COLOURS, SHAPES, Scene
from cookbook.ming_mini.thinker.shards import SLOTS
from sglang_omni.models.ming.media import MERGE, PATCH

TOKEN_SIDE = PATCH * MERGE
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
NAMES = ("", *SHAPES, *CHARACTERS)
"""What a slot may hold; nothing first."""
HUES = ("", *COLOURS)


def mark_tokens(scene: Scene) -> np.ndarray:
    """Numbers of what has its middle in each token of a picture, int8 [tokens, SLOTS + 1].

    The columns are up to three names from left to right, then the colour of the first. Tokens go
    row by row, as the encoder's features do.
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
            token[free[0]] = NAMES.index(mark.name)
    return found.reshape(-1, SLOTS + 1)
