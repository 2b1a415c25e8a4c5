"""Picture and sound files of arrays, in memory."""

import io
import wave

import numpy as np
from PIL import Image

RATE = 16_000
"""Samples per second of sound that a model hears."""


def png(pixels: np.ndarray) -> bytes:
    """Encode pixels, uint8 [height, width, 3], as PNG."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def wav(samples: np.ndarray, rate: int = RATE) -> bytes:
    """Encode mono samples, int16 [n], as WAV. `rate` is in Hz."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.tobytes())
    return file.getvalue()
