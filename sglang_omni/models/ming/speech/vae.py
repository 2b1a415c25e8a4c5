"""The 44.1 kHz audio VAE: frames of 882 samples, four frames per latent, windowed transformers.

Both halves run `Qwen2Stack` with a sliding window of 64. Modules have the checkpoint's tensor
names, so the loader copies strictly by name. The streaming decoders are `vae_slots.py` (plain
PyTorch) and `fast/vocoder.py` (CUDA graphs).
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.config import VAEConfig, VAESideConfig, read_vae_config
from sglang_omni.models.ming.speech.qwen2 import Qwen2Stack
from sglang_omni.models.ming.speech.vae_tensors import EXECUTED_ENCODER_LAYERS, is_unused_tensor
from sglang_omni.models.weights import TensorFolder, load_strict, use_device_and_dtype

logger = logging.getLogger(__name__)

AGGREGATOR_LAYERS = 4
# Window length of the inverse STFT, in hops.
HOPS_PER_WINDOW = 4
MAX_MAGNITUDE = 100.0


@dataclass(frozen=True)
class Posterior:
    """Diagonal Gaussian over latents; float32 `mean`, `std` and `raw` [batch, time, dim].

    `raw` is the output of the network; `std = softplus(raw) + 1e-4`.
    """

    mean: Tensor
    raw: Tensor

    @property
    def std(self) -> Tensor:
        """Return the standard deviation, float32 [batch, time, dim]."""
        return F.softplus(self.raw) + 1e-4

    def sample(self, noise: Tensor) -> Tensor:
        """Return latents [batch, time, dim] for standard normal `noise` of that shape."""
        return self.mean + self.std * noise


class VAEEncoder(nn.Module):
    """Waveform to posterior: frames, a windowed transformer, one CLS row per latent."""

    def __init__(self, config: VAESideConfig, patch: int, layers: int | None) -> None:
        super().__init__()
        hidden = config.backbone.hidden_size
        stored = config.backbone.num_hidden_layers
        self.frame, self.patch = config.frame, patch
        self.fc1 = nn.Linear(config.frame, hidden, bias=False)
        self.fc2 = nn.Linear(hidden, hidden)
        self.encoder = Qwen2Stack(config.backbone, layers=min(stored, layers or stored))
        self.cls_embed = nn.Parameter(torch.zeros(1, 1, hidden))
        self.aggregator = Qwen2Stack(config.backbone, layers=AGGREGATOR_LAYERS)
        self.fc3 = nn.Linear(hidden, 2 * config.latent_dim)

    def forward(self, waveform: Tensor) -> Posterior:
        """Encode waveform [batch, samples] in [-1, 1]: one latent per 3528 samples, rounded up."""
        rows = self.aggregate(self.encoder.forward_full(self.embed_frames(waveform)))
        return Posterior(*self.fc3(rows).float().chunk(2, dim=-1))

    def embed_frames(self, waveform: Tensor) -> Tensor:
        """Embed [batch, samples] as frames [batch, frames, hidden]; zeros fill the last frame."""
        padding = -waveform.shape[1] % self.frame
        frames = F.pad(waveform, (0, padding)).unflatten(1, (-1, self.frame))
        return self.fc2(self.fc1(frames.to(self.fc1.weight.dtype)))

    def aggregate(self, frames: Tensor) -> Tensor:
        """Append a CLS row to every four frames and return the CLS rows [batch, time, hidden]."""
        frames = F.pad(frames, (0, 0, 0, -frames.shape[1] % self.patch))
        groups = frames.unflatten(1, (-1, self.patch))
        cls = self.cls_embed.expand(groups.shape[0], groups.shape[1], -1)[:, :, None]
        rows = torch.cat((groups, cls), dim=2)
        return self.aggregator.forward_full(rows.flatten(1, 2))[:, self.patch :: self.patch + 1]


class ISTFT(nn.Module):
    """Inverse STFT with a Hann window of four hops, in float32 ("same" padding)."""

    window: Tensor

    def __init__(self, hop: int) -> None:
        super().__init__()
        self.hop, self.size = hop, hop * HOPS_PER_WINDOW
        self.crop = (self.size - hop) // 2
        window = torch.hann_window(self.size, dtype=torch.float32)
        self.register_buffer("window", window)

    def invert_spectra(self, magnitude: Tensor, phase: Tensor) -> Tensor:
        """Convert float32 spectra [batch, frames, bins] to frames [batch, frames, 4 * hop]."""
        # On a CPU this is twice as fast as torch.polar, which is not vectorised there.
        spectrum = torch.complex(magnitude * phase.cos(), magnitude * phase.sin())
        return torch.fft.irfft(spectrum, n=self.size) * self.window

    def overlap_add(self, frames: Tensor) -> Tensor:
        """Add frames [batch, frames, 4 * hop] at hop distance: [batch, (frames + 3) * hop]."""
        length = (frames.shape[1] + HOPS_PER_WINDOW - 1) * self.hop
        out = frames.new_zeros(frames.shape[0], length)
        for part in range(HOPS_PER_WINDOW):
            span = frames[..., part * self.hop : (part + 1) * self.hop].flatten(1)
            out[:, part * self.hop : part * self.hop + span.shape[1]] += span
        return out

    def compute_envelope(self, frames: int) -> Tensor:
        """Return the overlap-added squared window of `frames` frames, [1, (frames + 3) * hop]."""
        return self.overlap_add(self.window.square().expand(1, frames, -1))

    def forward(self, frames: Tensor) -> Tensor:
        """Convert all windowed frames of a signal to samples [batch, frames * hop]."""
        keep = slice(self.crop, -self.crop)
        envelope = self.compute_envelope(frames.shape[1])[:, keep]
        return self.overlap_add(frames)[:, keep] / envelope


class ISTFTHead(nn.Module):
    """Hidden states to windowed time frames, by log magnitude and phase."""

    def __init__(self, hidden: int, hop: int) -> None:
        super().__init__()
        self.istft = ISTFT(hop)
        self.out = nn.Linear(hidden, self.istft.size + 2)

    def forward(self, hidden: Tensor) -> Tensor:
        """Convert [batch, frames, hidden] to float32 windowed frames [batch, frames, 4 * hop]."""
        log_magnitude, phase = self.out(hidden).float().chunk(2, dim=-1)
        return self.istft.invert_spectra(log_magnitude.exp().clamp_max(MAX_MAGNITUDE), phase)


class VAEDecoder(nn.Module):
    """Latents to waveform: linear upsampling, a windowed transformer, inverse STFT."""

    def __init__(self, config: VAESideConfig, patch: int) -> None:
        super().__init__()
        hidden = config.backbone.hidden_size
        self.patch = patch
        self.fc1 = nn.Linear(config.latent_dim, hidden)
        self.decoder = Qwen2Stack(config.backbone)
        self.head = ISTFTHead(hidden, config.frame)

    def forward(self, latents: Tensor) -> Tensor:
        """Decode all latents [batch, time, dim] at once: float32 [batch, time * 3528] samples."""
        return self.head.istft(self.head(self.decoder.forward_full(self.embed_latents(latents))))

    def embed_latents(self, latents: Tensor) -> Tensor:
        """Return the transformer input [batch, 4 * time, hidden] of latents [batch, time, dim]."""
        return upsample(self.fc1(latents.to(self.fc1.weight.dtype)), self.patch)


class AudioVAE(nn.Module):
    """VAE encoder and decoder.

    `encoder_layers` limits how many of the stored encoder layers run; None runs all.
    """

    def __init__(
        self, config: VAEConfig, *, encoder_layers: int | None = EXECUTED_ENCODER_LAYERS
    ) -> None:
        super().__init__()
        self.config = config
        self.encoder = VAEEncoder(config.encoder, config.patch_size, encoder_layers)
        self.decoder = VAEDecoder(config.decoder, config.patch_size)


def upsample(rows: Tensor, factor: int) -> Tensor:
    """Upsample rows [batch, time, dim] by linear interpolation: [batch, factor * time, dim].

    Rows are interpolated between their centres; the first and last rows repeat at the ends.
    """
    upsampled = F.interpolate(rows.mT, scale_factor=factor, mode="linear", align_corners=False)
    # Contiguous, because transposed strides would propagate and slow the matrix products.
    return upsampled.mT.contiguous()


def load_vae(
    folder: Path,
    device: torch.device,
    dtype: torch.dtype,
    *,
    encoder_layers: int | None = EXECUTED_ENCODER_LAYERS,
) -> AudioVAE:
    """Load the VAE folder `talker/vae`, frozen, in evaluation mode.

    Stored tensors that the model does not use are skipped and logged.

    Raises:
        CheckpointError: A tensor is missing, unexpected or has the wrong shape.
    """
    config = read_vae_config(folder)
    with use_device_and_dtype(device, dtype):
        vae = AudioVAE(config, encoder_layers=encoder_layers)
    executed = len(vae.encoder.encoder.layers)
    report = load_strict(
        vae, TensorFolder(folder), ignore=lambda name: is_unused_tensor(name, executed)
    )
    logger.info(
        "%s: loaded %d tensors; unused: %s", folder, report.loaded, ", ".join(report.ignored)
    )
    return vae.eval().requires_grad_(False)
