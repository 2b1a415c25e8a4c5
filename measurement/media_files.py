"""Image and audio files from arrays, in memory."""

import io
import wave

import numpy as np
from PIL import Image

SAMPLE_RATE = 16_000
"""The default sample rate in Hz: that of the model's audio input."""


def encode_png(pixels: np.ndarray) -> bytes:
    """Encode pixels, uint8 [height, width, 3], as PNG."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def encode_wav(samples: np.ndarray, rate: int = SAMPLE_RATE) -> bytes:
    """Encode mono samples, int16 [n], as WAV. `rate` is in Hz."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.tobytes())
    return file.getvalue()
