"""Compute the speaker vector of a recording: log-mel filter bank, then CAM++."""

from pathlib import Path

import torch
import torchaudio
from torch import Tensor
from torchaudio.compliance import kaldi

from sglang_omni.media.onnx import open_session

SPEAKER_RATE = 16_000
MEL_BINS = 80


def resample(waveform: Tensor, source: int, target: int) -> Tensor:
    """Resample [..., samples] from `source` to `target` Hz, band-limited.

    Uses a Hann-windowed sinc of width 6 and roll-off 0.99: torchaudio's default, as the reference.
    """
    return torchaudio.functional.resample(waveform, source, target)


def compute_speaker_fbank(waveform: Tensor) -> Tensor:
    """Return Kaldi log-mel features [frames, 80] of 16 kHz samples [n] in [-1, 1], mean removed.

    25 ms frames every 10 ms, Povey window, no dither. The samples are not scaled to 16 bits.
    """
    features = kaldi.fbank(
        waveform[None], num_mel_bins=MEL_BINS, dither=0.0, sample_frequency=SPEAKER_RATE
    )
    return features - features.mean(dim=0, keepdim=True)


class SpeakerEncoder:
    """The CAM++ network `campplus.onnx`, on the CPU."""

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)
        self._input = self._session.get_inputs()[0].name

    def __call__(self, features: Tensor) -> Tensor:
        """Return the speaker vector [192] of features [frames, 80], float32 on the CPU."""
        feed = {self._input: features[None].float().cpu().numpy()}
        return torch.from_numpy(self._session.run(None, feed)[0]).flatten()
