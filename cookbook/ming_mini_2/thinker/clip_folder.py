"""Clips that another program made, as the server hears them.

A folder and those in it have files `chunk-*.npz`, each complete as soon as it is visible, with the
arrays

    audio   int16 [samples]: all clips of the chunk in a row, mono, at 44.1 kHz
    ends    int64 [clips]: where each clip ends in `audio`
    texts   uint8 [bytes]: a JSON list of what is said in each clip
    voices  uint8 [bytes]: a JSON list of the name of each clip's voice
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cookbook.ming_mini.vocoder import RATE
from sglang_omni.media.sinc import resample
from sglang_omni.models.ming.media_rules import SAMPLE_RATE

PATTERN = "chunk-*.npz"
MAX_SECONDS = 24.0
"""The longest clip to train on: the audio encoder's table of positions ends at 26 s."""


@dataclass(frozen=True)
class SpokenClip:
    """A clip: int16 samples [n] at 44.1 kHz, what is said, and the name of the voice."""

    samples: np.ndarray
    text: str
    voice: str

    @property
    def seconds(self) -> float:
        """Return the length."""
        return len(self.samples) / RATE

    def at_16khz(self) -> np.ndarray:
        """Return the clip as the server's media code makes it of a file: int16 at 16 kHz."""
        heard = resample(self.samples.astype(np.float32) / 32768.0, RATE, SAMPLE_RATE)
        return np.round(np.clip(heard, -1, 1) * 32767).astype(np.int16)


def chunk_files(folder: Path) -> list[Path]:
    """Return the chunks that are complete by now, in the order of their names."""
    return sorted(folder.rglob(PATTERN))


def read_chunk(path: Path) -> list[SpokenClip]:
    """Read the clips of a chunk.

    Raises:
        ValueError: The arrays do not agree.
    """
    with np.load(path) as data:
        audio, ends = data["audio"], data["ends"]
        texts, voices = _read_json(data["texts"]), _read_json(data["voices"])
    if not len(ends) == len(texts) == len(voices) or (len(ends) and ends[-1] != len(audio)):
        raise ValueError(f"{path}: audio, ends, texts and voices do not agree")
    parts = np.split(audio, ends[:-1])
    return [SpokenClip(*clip) for clip in zip(parts, texts, voices, strict=False)]


def _read_json(stored: np.ndarray) -> Any:
    """Parse JSON from bytes, which numpy stores as uint8 or as a scalar of bytes."""
    return json.loads(stored.tobytes().rstrip(b"\0"))


def write_chunk(path: Path, clips: Sequence[SpokenClip]) -> None:
    """Write clips as a chunk, and then rename it, so that a visible chunk is complete."""
    lengths = [len(clip.samples) for clip in clips]
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez(
            file,
            audio=np.concatenate([clip.samples for clip in clips]).astype(np.int16),
            ends=np.cumsum(lengths, dtype=np.int64),
            texts=_to_json([clip.text for clip in clips]),
            voices=_to_json([clip.voice for clip in clips]),
        )
    partial.rename(path)


def _to_json(values: Sequence[str]) -> np.ndarray:
    return np.frombuffer(json.dumps(list(values)).encode(), np.uint8)


def clips_from(folder: Path, number: int) -> Iterator[SpokenClip]:
    """Yield the clips of all chunks of a folder once, from chunk `number` on, around the end.

    Raises `FileNotFoundError` if there is no chunk.
    """
    files = chunk_files(folder)
    if not files:
        raise FileNotFoundError(folder / PATTERN)
    for step in range(len(files)):
        for clip in read_chunk(files[(number + step) % len(files)]):
            if clip.seconds <= MAX_SECONDS:
                yield clip
