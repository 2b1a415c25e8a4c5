"""Loads without a right answer.

They are a smoke test of every pair of modalities, and a sweep of plain texts. The smoke test has
text, image, audio and video in, and text or speech out.
"""

from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.client.target import ChatRequest, MediaPart, Part, TextPart
from benchmarks.client.texts import TEXTS
from benchmarks.evaluation.datasets.drawing import (
    COLOURS,
    SHAPES,
    draw_picture,
    encode_mp4,
    make_sweep,
)
from benchmarks.evaluation.datasets.source import Dataset, Row
from benchmarks.evaluation.tasks.task import Sample, Task
from measurement.media_files import encode_png, encode_wav

INPUTS = ("text", "image", "audio", "video")
OUTPUTS = ("text", "speech")
COUNT = 100
SIDE = 256


def _rows() -> list[Row]:
    return [{"id": f"{number:03}", "text": TEXTS[number % len(TEXTS)]} for number in range(COUNT)]


DRAWN = Dataset("drawn", None, "test", ("id", "text"), _rows)


def _image(number: int) -> Part:
    """Draw a picture that no other number has: a repeated one would not be encoded again."""
    pixels = draw_picture(COLOURS[number % 4], SHAPES[number % 3], 1 + number % 3, SIDE).copy()
    pixels[0, number % SIDE] = (number % 256, 0, 0)
    return MediaPart("image", encode_png(pixels), "png")


def _audio(number: int) -> Part:
    return MediaPart("audio", encode_wav(make_sweep(100.0 + number, 200.0, 1.5)), "wav")


def _video(number: int) -> Part:
    """Make two seconds of video; the shape changes its colour in the second half."""
    colours = [COLOURS[(number + half) % 4] for half in (0, 1) for _ in range(4)]
    frames = [
        draw_picture(colour, SHAPES[number % 3], side=64 + 2 * (number % 32)) for colour in colours
    ]
    return MediaPart("video", encode_mp4(frames), "mp4")


_MEDIA: dict[str, Callable[[int], Part]] = {"image": _image, "audio": _audio, "video": _video}


def _samples(rows: Sequence[Row], brings: str, speech: bool, most: int) -> list[Sample]:
    samples = []
    for number, row in enumerate(rows):
        # Media that a run with the other output has not sent before.
        drawn = number + COUNT * speech
        media = () if brings == "text" else (_MEDIA[brings](drawn),)
        ask = ChatRequest(
            (*media, TextPart(f"{number}. {row['text']}")),
            max_tokens=most,
            temperature=0.0,
            seed=number,
            speech=speech,
        )
        samples.append(Sample(row["id"], ask))
    return samples


TASKS = (
    *(
        Task(
            "modality",
            f"{brings}-to-{gives}",
            DRAWN,
            partial(_samples, brings=brings, speech=gives == "speech", most=64),
        )
        for brings in INPUTS
        for gives in OUTPUTS
    ),
    Task("sweep", "text", DRAWN, partial(_samples, brings="text", speech=False, most=256)),
)
