"""Discriminators over complex spectrograms at several resolutions, small and fast.

The synthesizers generate nothing above 11 kHz, so the discriminators only see lower frequencies.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from cookbook.ming_mini.compilation import Runner, run_eager
from cookbook.ming_mini.losses import spectrum

SIZES = (512, 1024, 2048)
SHARE = 0.55
"""The share of the bins, from the lowest, that are used."""
LOUDER = 10.0
SLOPE = 0.1

Features = list[Tensor]


class SpectrogramDiscriminator(nn.Module):
    """Convolutions over time and frequency, with a decision for every place."""

    window: Tensor

    def __init__(self, size: int, channels: int, run: Runner = run_eager) -> None:
        super().__init__()
        self._size, self._bins, self._run = size, int(SHARE * (size // 2 + 1)), run
        self.register_buffer("window", torch.hann_window(size))
        widths = (2, channels, channels, channels, channels)
        # Strides over frequency, then time: each decision covers 50 ms.
        strides = ((2, 1), (2, 1), (2, 2), (1, 1))
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(wide_in, wide_out, (7, 3), stride, padding=(3, 1)))
            for wide_in, wide_out, stride in zip(widths, widths[1:], strides, strict=False)
        )
        self.out = weight_norm(nn.Conv2d(channels, 1, 3, padding=1))

    def forward(self, waveform: Tensor) -> Features:
        """Return activations of every layer for waveforms [batch, samples].

        The last ones are the decisions.
        """
        bins = spectrum(waveform.float(), self._size, self.window, self._size // 4)
        return self._run(self._convolve, torch.view_as_real(bins[:, : self._bins]))

    def _convolve(self, bins: Tensor) -> Features:
        """Return activations for spectra [batch, bins, frames, real and imaginary]."""
        x = bins.movedim(-1, 1) * LOUDER
        # The root of the magnitude, with the phase kept, gives quiet parts weight.
        x = x / (x.square().sum(1, keepdim=True) + 1e-6).pow(0.25)
        found = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), SLOPE)
            found.append(x)
        return [*found, self.out(x)]


class Discriminators(nn.Module):
    """One discriminator for each window size. `run` runs what follows their STFTs."""

    def __init__(
        self, sizes: Sequence[int] = SIZES, channels: int = 32, run: Runner = run_eager
    ) -> None:
        super().__init__()
        parts = (SpectrogramDiscriminator(size, channels, run) for size in sizes)
        self.parts = nn.ModuleList(parts)

    def forward(self, waveform: Tensor) -> list[Features]:
        """Return every part's activations for waveforms [batch, samples]."""
        return [part(waveform) for part in self.parts]


def discriminator_loss(real: list[Features], made: list[Features]) -> Tensor:
    """Return the hinge loss of the decisions."""
    losses = [
        F.relu(1 - good[-1].float()).mean() + F.relu(1 + bad[-1].float()).mean()
        for good, bad in zip(real, made, strict=True)
    ]
    return torch.stack(losses).mean()


def adversarial_loss(made: list[Features]) -> Tensor:
    """Return the generator's adversarial loss."""
    return torch.stack([-part[-1].float().mean() for part in made]).mean()


def feature_loss(real: list[Features], made: list[Features]) -> Tensor:
    """Return the distance of activations, relative to the size of those of the real sound."""
    losses = [
        F.l1_loss(bad.float(), good.float()) / good.float().abs().mean().clamp_min(1e-3)
        for parts in zip(real, made, strict=True)
        for good, bad in zip(parts[0][:-1], parts[1][:-1], strict=True)
    ]
    return torch.stack(losses).mean()
