"""Frames to the patch rows that the goldens hold, in plain NumPy."""

import numpy as np

# The constants of CLIP, for R, G, B.
MEAN = np.array([0.48145466, 0.4578275, 0.40821073])
STD = np.array([0.26862954, 0.26130258, 0.27577711])
ONE_LEVEL = 1 / 255 / STD


def patches(frames: np.ndarray) -> np.ndarray:
    """uint8 [frames, height, width, 3] to float64 [patches, 1536], in 2x2 merge order."""
    count, height, width, _ = frames.shape
    pixels = ((frames / 255 - MEAN) / STD).transpose(0, 3, 1, 2)
    blocks = pixels.reshape(count // 2, 2, 3, height // 32, 2, 16, width // 32, 2, 16)
    return blocks.transpose(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(-1, 3 * 2 * 16 * 16)
