"""Pictures, clips and videos that are drawn on demand, so that no files need to be shipped."""

import io

import numpy as np
from PIL import Image, ImageDraw

from measurement.media_files import SAMPLE_RATE

SIDE = 96
FRAMES_PER_S = 4
COLOURS = ("red", "green", "blue", "orange")
SHAPES = ("circle", "square", "triangle")


def draw_picture(colour: str, shape: str, count: int = 1, side: int = SIDE) -> np.ndarray:
    """Draw shapes of one colour side by side on white: uint8 [side, side, 3]."""
    image = Image.new("RGB", (side, side), "white")
    pen, step = ImageDraw.Draw(image), side / count
    for index in range(count):
        left, half = index * step + 0.1 * step, 0.4 * step
        box = (left, side / 2 - half, left + 2 * half, side / 2 + half)
        if shape == "circle":
            pen.ellipse(box, fill=colour)
        elif shape == "square":
            pen.rectangle(box, fill=colour)
        else:
            corners = [(box[0], box[3]), (box[2], box[3]), (left + half, box[1])]
            pen.polygon(corners, fill=colour)
    return np.asarray(image)


def make_sweep(
    low_hz: float, high_hz: float, seconds: float = 1.0, rate: int = SAMPLE_RATE
) -> np.ndarray:
    """Make a tone that sweeps between two pitches, with overtones like a voice's: int16 [n]."""
    time = np.arange(int(seconds * rate)) / rate
    pitch = low_hz + (high_hz - low_hz) * time / seconds
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 6))
    fade = np.minimum(1.0, np.minimum(time, seconds - time) / 0.02)
    return np.rint(8000 * fade * sound).astype(np.int16)


def encode_mp4(frames: list[np.ndarray]) -> bytes:
    """Encode frames, uint8 [height, width, 3] at four per second, as a video file."""
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("mpeg4", rate=FRAMES_PER_S)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        out.mux(stream.encode(None))
    return file.getvalue()
