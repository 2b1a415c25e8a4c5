"""Whisper's log-mel spectrogram with 128 bins, without padding to 30 s."""

import math
from functools import lru_cache

import torch
from torch import Tensor

from sglang_omni.models.ming.media_rules import MEL_HOP, SAMPLE_RATE
from sglang_omni.protocol.errors import InvalidRequest

WINDOW = 400
# Reflection at both ends needs more samples than half a window has.
MIN_SAMPLES = WINDOW // 2 + 1

# Slaney's scale: linear up to 1 kHz, logarithmic above.
LINEAR_HZ = 200.0 / 3
BREAK_HZ = 1000.0
BREAK_MEL = BREAK_HZ / LINEAR_HZ
LOG_STEP = math.log(6.4) / 27.0


def mel_frames(samples: int) -> int:
    """Frames of a clip of `samples` at 16 kHz. Raises `InvalidRequest` when it is too short."""
    if samples < MIN_SAMPLES:
        raise InvalidRequest(f"a clip of {samples} samples is shorter than {MIN_SAMPLES}")
    return samples // MEL_HOP


def log_mel(samples: Tensor, bins: int) -> Tensor:
    """Spectrogram [samples // 160, bins], float32, of samples [samples] at 16 kHz in [-1, 1].

    Hann window of 400, hop 160, power, mel filters, `log10`, at most 8 below the clip's own
    maximum, then `(x + 4) / 4`. Raises `InvalidRequest` for a clip that is too short.
    """
    frames = mel_frames(len(samples))
    window = torch.hann_window(WINDOW, device=samples.device)
    spectrum = torch.stft(samples.float(), WINDOW, MEL_HOP, window=window, return_complex=True)
    power = spectrum[:, :frames].abs() ** 2
    mel = mel_filters(bins, samples.device) @ power
    level = mel.clamp(min=1e-10).log10()
    return ((torch.maximum(level, level.max() - 8.0) + 4.0) / 4.0).T


@lru_cache
@torch.inference_mode(False)
def mel_filters(bins: int, device: torch.device) -> Tensor:
    """Triangular filters [bins, 201] of equal area, evenly spaced on Slaney's scale."""
    frequencies = torch.linspace(0, SAMPLE_RATE / 2, WINDOW // 2 + 1, dtype=torch.float64)
    highest = BREAK_MEL + math.log(SAMPLE_RATE / 2 / BREAK_HZ) / LOG_STEP
    edges = _hertz(torch.linspace(0, highest, bins + 2, dtype=torch.float64))
    width = edges.diff()
    slopes = edges[:, None] - frequencies
    rising, falling = -slopes[:-2] / width[:-1, None], slopes[2:] / width[1:, None]
    area = 2.0 / (edges[2:] - edges[:-2])
    triangles = torch.minimum(rising, falling).clamp(min=0) * area[:, None]
    return triangles.float().to(device)


def _hertz(mel: Tensor) -> Tensor:
    logarithmic = BREAK_HZ * torch.exp(LOG_STEP * (mel - BREAK_MEL))
    return torch.where(mel < BREAK_MEL, mel * LINEAR_HZ, logarithmic)
