"""Target: small media files with broken headers, through the decoding processes."""

import base64
import io
import json
import random
from functools import cache
from typing import Any

import httpx
import numpy as np
import soundfile

from tests.entrypoints.http.fake import Served
from tests.hostile.clients import CHAT, CHATS
from tests.hostile.fuzz.case import Case, Finding
from tests.hostile.fuzz.mutate import mutate_bytes
from tests.media.files import encoded, movie, picture

TARGET = "media"
WAIT_S = 60.0
ALLOWED = frozenset({200, 400, 413, 429, 503})
# What a header takes in most formats; a mutation there tells more than one in the pixels.
HEADER_BYTES = 256


@cache
def seeds() -> tuple[tuple[str, bytes], ...]:
    """A small good file of each format, with its kind."""
    pictures = [
        ("image", encoded(picture(), form))
        for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
    ]
    sounds = [("audio", _sound(form, coding)) for form, coding in SOUNDS]
    movies = [("video", movie(6)), ("video", movie(6, form="webm", codec="libvpx"))]
    return (*pictures, *sounds, *movies)


SOUNDS = (
    ("WAV", "PCM_16"),
    ("WAV", "FLOAT"),
    ("FLAC", "PCM_16"),
    ("MP3", "MPEG_LAYER_III"),
    ("OGG", "VORBIS"),
)


def _sound(form: str, coding: str) -> bytes:
    file = io.BytesIO()
    samples = 0.3 * np.sin(np.arange(8000) / 16)
    soundfile.write(file, samples.astype(np.float32), 16_000, format=form, subtype=coding)
    return file.getvalue()


def make(source: random.Random) -> Case:
    """A file of some kind, hurt mostly in its header."""
    kind, data = source.choice(seeds())
    if source.random() < 0.7:
        data = mutate_bytes(source, data[:HEADER_BYTES]) + data[HEADER_BYTES:]
    else:
        data = mutate_bytes(source, data, 8)
    if source.random() < 0.1:
        data += source.choice(seeds())[1]
    if source.random() < 0.1:
        kind = source.choice(("image", "audio", "video"))
    return Case(TARGET, kind, data)


def play(served: Served, case: Case) -> None:
    """Send it in a chat. The answer must come, and be one of those that name what is wrong."""
    url = "data:;base64," + base64.b64encode(case.data).decode()
    part: dict[str, Any] = {"type": f"{case.about}_url", f"{case.about}_url": {"url": url}}
    text = {"type": "text", "text": "what is it"}
    content = json.dumps({**CHAT, "messages": [{"role": "user", "content": [part, text]}]})
    headers = {"Content-Type": "application/json"}
    with httpx.Client(timeout=WAIT_S) as client:
        answer = client.post(f"{served.url}{CHATS}", content=content, headers=headers)
    if answer.status_code not in ALLOWED:
        raise Finding(f"answered with {answer.status_code}: {answer.text[:200]}")
