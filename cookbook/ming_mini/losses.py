"""Reconstruction losses of waveforms, and the rate of a posterior."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cookbook.ming_mini.compilation import Runner, run_eager
from sglang_omni.models.ming.speech.vae import ISTFT, Posterior

# Windows in samples at 44.1 kHz (12 to 93 ms), and their numbers of mel bands.
RESOLUTIONS = ((512, 40), (1024, 64), (2048, 96), (4096, 128))
FLOOR = 1e-4
"""Magnitudes below this, about -80 dB under speech, count as silence."""


def spectrum(waveform: Tensor, size: int, window: Tensor, hop: int) -> Tensor:
    """Return the complex STFT [batch, bins, frames] of [batch, samples].

    It is scaled to the level of a sample.
    """
    scale = 1 / window.square().sum().sqrt()
    return torch.stft(waveform, size, hop, window=window, return_complex=True) * scale


def mel_matrix(rate: int, size: int, bands: int) -> Tensor:
    """Return triangular mel filters [bands, size // 2 + 1], each of unit sum (HTK's mel scale)."""
    top = 2595 * torch.log10(torch.tensor(1 + rate / 2 / 700))
    corners = 700 * (10 ** (torch.linspace(0, float(top), bands + 2) / 2595) - 1)
    bins = torch.linspace(0, rate / 2, size // 2 + 1)
    # At least two bins wide: low bands of short windows would be empty.
    width = rate / size
    rise = (bins - corners[:-2, None]) / (corners[1:-1] - corners[:-2]).clamp_min(width)[:, None]
    fall = (corners[2:, None] - bins) / (corners[2:] - corners[1:-1]).clamp_min(width)[:, None]
    filters = torch.minimum(rise, fall).clamp_min(0)
    return filters / filters.sum(1, keepdim=True).clamp_min(1e-3)


SPOKEN = 0.25
"""Share of the sampling rate below which the synthesizers speak."""
QUIET = -4.0
"""Log magnitude of a head's frame under which it is silent."""


class SpectralLoss(nn.Module):
    """Mean distance of log-mel spectra and of magnitudes, over several resolutions.

    `run` runs what follows the STFT, by far most of the loss's memory traffic.
    """

    def __init__(
        self,
        rate: int = 44_100,
        resolutions: Sequence[tuple[int, int]] = RESOLUTIONS,
        run: Runner = run_eager,
    ) -> None:
        super().__init__()
        self._sizes, self._run = [size for size, _ in resolutions], run
        for size, bands in resolutions:
            self.register_buffer(f"window{size}", torch.hann_window(size))
            self.register_buffer(f"mel{size}", mel_matrix(rate, size, bands))

    def forward(self, made: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return mel loss and magnitude loss of waveforms [batch, samples]."""
        pairs = [self._resolution(made, real, size) for size in self._sizes]
        mel, magnitude = zip(*pairs, strict=True)
        return sum(mel) / len(mel), sum(magnitude) / len(magnitude)

    def _resolution(self, made: Tensor, real: Tensor, size: int) -> tuple[Tensor, Tensor]:
        window, mel = getattr(self, f"window{size}"), getattr(self, f"mel{size}")
        # One by one: in one batch the real sound would have a gradient as well.
        made_bins, real_bins = (
            torch.view_as_real(spectrum(waveform.float(), size, window, size // 4))
            for waveform in (made, real)
        )
        return self._run(compare_spectra, made_bins, real_bins, mel)


def compare_spectra(made: Tensor, real: Tensor, mel: Tensor) -> tuple[Tensor, Tensor]:
    """Return mel loss and magnitude loss of spectra [batch, bins, frames, real and imaginary].

    `mel` [bands, bins] are the filters.
    """
    made, real = _magnitude(made), _magnitude(real)
    bands = F.l1_loss(_log(mel @ made), _log(mel @ real))
    return bands, F.l1_loss(_log(made), _log(real)) + 4 * F.l1_loss(made.sqrt(), real.sqrt())


def _magnitude(bins: Tensor) -> Tensor:
    # The square root has no gradient at zero.
    return (bins.square().sum(-1) + 1e-10).sqrt()


def _log(magnitude: Tensor) -> Tensor:
    return magnitude.clamp_min(FLOOR).log()


class FrameLoss(nn.Module):
    """Distance of the head's own spectra from those of the real waveform's frames.

    Overlapping frames blur the errors of a single frame, so losses on the waveform alone take very
    long to learn harmonics and their phases. Here each frame has its own loss.
    """

    window: Tensor

    def __init__(self, istft: ISTFT) -> None:
        super().__init__()
        self._hop, self._size, self._crop = istft.hop, istft.size, istft.crop
        self.register_buffer("window", istft.window.detach().clone())

    def forward(
        self, log_magnitude: Tensor, phase: Tensor, real: Tensor, band: int
    ) -> tuple[Tensor, Tensor]:
        """Return level loss and phase loss of spectra [batch, frames, bins] for [batch, samples].

        The phase loss is the mean of 1 - cos of the error over the lowest `band` bins, weighted by
        magnitude. The first and last two frames extend beyond the waveform and do not count.
        """
        frames = F.pad(real, (self._crop, self._crop)).unfold(1, self._size, self._hop)[:, 2:-2]
        log_magnitude, phase = log_magnitude[:, 2:-2], phase[:, 2:-2, :band]
        wanted = torch.fft.rfft(frames * self.window)[..., : int(SPOKEN * self._size)]
        magnitude = wanted.abs()
        quiet = log_magnitude[..., : wanted.shape[-1]].clamp_min(QUIET)
        level = F.l1_loss(quiet, magnitude.log().clamp_min(QUIET))
        wanted, weight = wanted[..., :band], magnitude[..., :band]
        unit = wanted / weight.clamp_min(1e-6)
        error = 1 - (unit.real * phase.cos() + unit.imag * phase.sin())
        return level, (weight * error).sum() / weight.sum().clamp_min(1e-6)


def phase_band(progress: float, size: int = 3528) -> int:
    """Return the number of bins in the phase loss, for spectra of `size` samples at 44.1 kHz.

    It grows from 300 Hz at first to 5 kHz at the end. The phases of all harmonics follow from the
    times of the voice's pulses. High harmonics determine them most exactly, but only near the
    solution; the fundamental does so from anywhere. With all bins from the start nothing was
    learned in 1900 steps; from below, one voice in 700. The band grows in a few steps, because each
    is another CUDA graph.
    """
    lowest, highest, strides = 300 * size / 44_100, 5000 * size / 44_100, 12
    share = round(strides * min(1.0, 1.2 * progress)) / strides
    return round(lowest * (highest / lowest) ** share)


def divergence(posterior: Posterior) -> Tensor:
    """Return the rate in nats per latent.

    It is the mean of KL(posterior, N(0, 1)), summed over dimensions.
    """
    mean, std = posterior.mean, posterior.std
    return 0.5 * (mean.square() + std.square() - 1 - 2 * std.log()).sum(-1).mean()
