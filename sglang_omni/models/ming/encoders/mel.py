"""Whisper's log-mel spectrogram with 128 bins, without padding to 30 s."""

import math
from functools import lru_cache

import torch
from torch import Tensor

from sglang_omni.models.ming.media_rules import MEL_HOP, SAMPLE_RATE
from sglang_omni.protocol.errors import InvalidRequest

WINDOW = 400
# Reflection at both ends needs more than half a window of samples.
MIN_SAMPLES = WINDOW // 2 + 1

# Slaney's mel scale: linear up to 1 kHz, logarithmic above.
HZ_PER_MEL = 200.0 / 3
BREAK_HZ = 1000.0
BREAK_MEL = BREAK_HZ / HZ_PER_MEL
LOG_STEP = math.log(6.4) / 27.0


def count_mel_frames(samples: int) -> int:
    """Return the frames of a clip of `samples` at 16 kHz; raise `InvalidRequest` if too short."""
    if samples < MIN_SAMPLES:
        raise InvalidRequest(f"the audio has {samples} samples; the minimum is {MIN_SAMPLES}")
    return samples // MEL_HOP


def compute_log_mel(samples: Tensor, bins: int) -> Tensor:
    """Return the float32 log-mel [samples // 160, bins] of samples [samples] at 16 kHz in [-1, 1].

    Hann window of 400, hop 160, power, mel filters, `log10`, clamped to 8 below the maximum of the
    clip, then `(x + 4) / 4`.

    Raises:
        InvalidRequest: The clip is too short.
    """
    frames = count_mel_frames(len(samples))
    window = torch.hann_window(WINDOW, device=samples.device)
    spectrum = torch.stft(samples.float(), WINDOW, MEL_HOP, window=window, return_complex=True)
    power = spectrum[:, :frames].abs() ** 2
    mel = build_mel_filters(bins, samples.device) @ power
    level = mel.clamp(min=1e-10).log10()
    return ((torch.maximum(level, level.max() - 8.0) + 4.0) / 4.0).T


@lru_cache
@torch.inference_mode(False)
def build_mel_filters(bins: int, device: torch.device) -> Tensor:
    """Return triangular filters [bins, 201] of equal area, evenly spaced on Slaney's scale."""
    frequencies = torch.linspace(0, SAMPLE_RATE / 2, WINDOW // 2 + 1, dtype=torch.float64)
    max_mel = BREAK_MEL + math.log(SAMPLE_RATE / 2 / BREAK_HZ) / LOG_STEP
    edges = _mel_to_hertz(torch.linspace(0, max_mel, bins + 2, dtype=torch.float64))
    width = edges.diff()
    slopes = edges[:, None] - frequencies
    rising, falling = -slopes[:-2] / width[:-1, None], slopes[2:] / width[1:, None]
    area = 2.0 / (edges[2:] - edges[:-2])
    triangles = torch.minimum(rising, falling).clamp(min=0) * area[:, None]
    return triangles.float().to(device)


def _mel_to_hertz(mel: Tensor) -> Tensor:
    logarithmic = BREAK_HZ * torch.exp(LOG_STEP * (mel - BREAK_MEL))
    return torch.where(mel < BREAK_MEL, mel * HZ_PER_MEL, logarithmic)
