"""A recording that the default model knows, and what a client got back, measured."""

import io
import json
import os
import wave
from pathlib import Path

DATA = Path(__file__).parents[2] / "sglang_omni/checkpoints/ming-mini/talker/data"
RECORDING = DATA / "voices/alpha.flac"
WAV_VARIABLE = "CLIENT_RECORDING_WAV"
"""The environment variable with the path of `RECORDING` as WAV, which needs no decoder."""
SAID = json.loads((DATA / "voice_name.json").read_text(encoding="utf-8"))["alpha"]["prompt_text"]
# A sum that the default model knows, and its result.
SUM, RESULT = "What is 17 + 25?", "42"
LINE = "The river runs past the old mill."


def read_samples() -> tuple[bytes, int]:
    """16-bit mono samples of `RECORDING`, and how many there are in a second."""
    with wave.open(os.environ[WAV_VARIABLE]) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.readframes(file.getnframes()), file.getframerate()


def seconds_of(wav: bytes, complete: bool = True) -> float:
    """How long a WAV file is, by its samples; by its header as well, where it is `complete`."""
    with wave.open(io.BytesIO(wav)) as file:
        samples = file.readframes(file.getnframes())
        assert not complete or len(samples) == file.getnframes() * 2
        return len(samples) / 2 / file.getframerate()


def is_mp3(sound: bytes) -> bool:
    """Whether these bytes begin as an MP3 file does: with a tag, or with a frame."""
    return sound.startswith(b"ID3") or (sound[:1] == b"\xff" and sound[1] & 0xE0 == 0xE0)


def is_png(picture: bytes) -> bool:
    """Whether these bytes begin as a PNG file does."""
    return picture.startswith(b"\x89PNG\r\n\x1a\n")


def check_transcript(text: str) -> None:
    """Show what was heard of `RECORDING`; fail if it is not most of `SAID`."""
    print(f"  heard: {text.strip()!r}")
    said, heard = (set(one.lower().strip(" .").split()) for one in (SAID, text))
    assert len(said & heard) > len(said) / 2, text
