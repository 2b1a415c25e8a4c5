"""Speech as the thinker's input: 16 kHz, 16 bits, with varied loudness and noise."""

from collections.abc import Callable
from random import Random

import numpy as np
import soxr
import torch

from cookbook.ming_mini.speakers import Speaker
from cookbook.ming_mini.vocoder import RATE
from sglang_omni.models.ming.encoders.mel import compute_log_mel
from sglang_omni.models.ming.media_rules import SAMPLE_RATE

Synthesizer = Callable[[str, Speaker], np.ndarray]
"""A synthesizer: text and speaker to float32 samples at 44.1 kHz."""

BINS = 128
LETTERS = " abcdefghijklmnopqrstuvwxyz'"
"""Letter n of a transcript is number n + 1; 0 is the blank."""
SPEED_SHARE, SPEEDS = 0.6, (0.88, 1.14)
"""The share of clips that are played at another speed, and the slowest and the fastest."""
NOISE_SHARE, NOISE_DB = 0.5, (-60.0, -30.0)
GAIN_DB = (-14.0, 6.0)


def at_16khz(samples: np.ndarray) -> np.ndarray:
    """Convert samples of the synthesizer to int16 at 16 kHz."""
    heard = soxr.resample(samples, RATE, SAMPLE_RATE)
    return np.round(np.clip(heard, -1, 1) * 32767).astype(np.int16)


def change_speed(samples: np.ndarray, rng: Random) -> np.ndarray:
    """Play int16 samples faster and higher or slower and lower, or leave them as they are."""
    if rng.random() >= SPEED_SHARE:
        return samples
    played = soxr.resample(samples / 32768.0, SAMPLE_RATE * rng.uniform(*SPEEDS), SAMPLE_RATE)
    return np.round(np.clip(played, -1, 1) * 32767).astype(np.int16)


def augment(samples: np.ndarray, rng: Random) -> np.ndarray:
    """Vary the loudness of int16 samples, perhaps add noise, and add silence around them."""
    noise = np.random.default_rng(rng.randrange(2**32))
    before, after = (rng.randrange(SAMPLE_RATE * 2 // 5) for _ in range(2))
    sound = np.pad(samples / 32768.0, (before, after)) * 10 ** (rng.uniform(*GAIN_DB) / 20)
    if rng.random() < NOISE_SHARE:
        level = 10 ** (rng.uniform(*NOISE_DB) / 20)
        sound = sound + level * noise.standard_normal(len(sound))
    return np.round(np.clip(sound, -1, 1) * 32767).astype(np.int16)


def encode_log_mel(samples: np.ndarray) -> np.ndarray:
    """Compute the server's log-mel [frames, 128] of int16 samples, as float16."""
    floats = torch.from_numpy(samples.astype(np.float32) / 32768.0)
    return compute_log_mel(floats, BINS).numpy().astype(np.float16)


def letter_numbers(text: str) -> np.ndarray:
    """Convert the letters of a transcript to numbers from 1, for the CTC loss; int8."""
    plain = " ".join(text.lower().replace("-", " ").split())
    return np.array([LETTERS.index(c) + 1 for c in plain if c in LETTERS], np.int8)
