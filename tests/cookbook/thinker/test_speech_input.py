"""What varies a clip in the training."""

from random import Random

import numpy as np
import torch

from cookbook.ming_mini.thinker.speech_input import SPEEDS, change_speed
from cookbook.ming_mini.thinker.training_losses import (
    BAND_SHARE,
    BANDS,
    SPAN_FRAMES,
    SPANS,
    mask_spectrograms,
)
from sglang_omni.models.ming.media_rules import SAMPLE_RATE


def test_speed_changes_pitch_and_length_together() -> None:
    seconds = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    tone = np.round(8000 * np.sin(2 * np.pi * 400 * seconds)).astype(np.int16)
    lengths = set()
    for seed in range(20):
        played = change_speed(tone, Random(seed))
        speed = len(tone) / len(played)
        lengths.add(len(played))
        assert SPEEDS[0] - 0.01 < speed < SPEEDS[1] + 0.01
        spectrum = np.abs(np.fft.rfft(played * np.hanning(len(played))))
        pitch = spectrum.argmax() * SAMPLE_RATE / len(played)
        assert abs(pitch - 400 * speed) < 2
    assert len(tone) in lengths
    assert len(lengths) > 5


def test_masks_hide_few_bins_and_frames_of_each_clip() -> None:
    noise = torch.Generator().manual_seed(3)
    lengths = torch.tensor([400, 100])
    mel = torch.randn(2, 448, 128, generator=noise)
    masked = mask_spectrograms(mel, lengths, noise)
    for clip, length in enumerate(lengths.tolist()):
        changed = (masked[clip] != mel[clip])[:length]
        assert 0 < changed.all(0).sum() <= BANDS * (BAND_SHARE * 128 + 1)
        assert 0 < changed.all(1).sum() <= SPANS * (SPAN_FRAMES + 1)
        mean = mel[clip, :length].mean()
        torch.testing.assert_close(masked[clip, :length][changed], mean.expand(int(changed.sum())))
        # Elsewhere nothing changes.
        kept = ~changed.all(0)[None] & ~changed.all(1)[:, None]
        assert not changed[kept].any()
