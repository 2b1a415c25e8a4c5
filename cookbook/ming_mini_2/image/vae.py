"""The image VAE: diffusers' class, with what a training needs around it."""

from typing import Any

import torch
from torch import Tensor, nn

from cookbook.ming_mini_2.image.configs import ImageSizes, LatentScale, vae_config

NARROWEST = -12.0
"""The least log variance of a posterior."""


def new_vae(sizes: ImageSizes, seed: int) -> Any:
    """Return a VAE with initial weights that follow from `seed`."""
    from diffusers import AutoencoderKL

    torch.manual_seed(seed)
    vae: Any = AutoencoderKL
    vae = vae.from_config(vae_config(sizes))
    # Channels last: convolutions with few channels are several times as fast.
    return vae.to(memory_format=torch.channels_last)


def to_model(pictures: Tensor) -> Tensor:
    """Return pictures [N, height, width, 3] of 0 to 255 as [N, 3, height, width] in [-1, 1]."""
    return (pictures / 127.5 - 1).permute(0, 3, 1, 2)


def to_pictures(pixels: Tensor) -> Tensor:
    """Return the pictures, float32 of 0 to 255, of what the VAE decodes; see `to_model`."""
    return ((pixels.float().clamp(-1, 1) + 1) * 127.5).permute(0, 2, 3, 1)


def encode_posterior(vae: Any, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and log variance, float32 [N, 16, height / 8, width / 8] each."""
    moments = vae.encoder(pixels).float()
    mean, log_variance = moments.chunk(2, dim=1)
    return mean, log_variance.clamp(NARROWEST, 10.0)


def count_nats(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return the mean divergence of a latent (all channels at one place) from a unit normal."""
    nats = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance)
    return nats.sum(1).mean()


@torch.no_grad()
def measure_scale(means: Tensor) -> LatentScale:
    """Return the scale that brings these latents to mean 0 and deviation 1."""
    return LatentScale(1 / means.std().item(), means.mean().item())


class LatentCodec:
    """Encodes and decodes pictures as the product does, many at a time."""

    def __init__(self, vae: nn.Module, scale: LatentScale) -> None:
        self._vae: Any = vae.eval().requires_grad_(False)
        self._scale = scale

    @torch.no_grad()
    def encode(self, pictures: Tensor) -> Tensor:
        """Return latents, float32 [N, 16, height / 8, width / 8], of pictures of 0 to 255."""
        mean, _ = encode_posterior(self._vae, to_model(pictures))
        return (mean - self._scale.shift) * self._scale.scaling

    @torch.no_grad()
    def decode(self, latents: Tensor) -> Tensor:
        """Return pictures, float32 [N, height, width, 3] of 0 to 255, of latents."""
        x = latents / self._scale.scaling + self._scale.shift
        return to_pictures(self._vae.decode(x, return_dict=False)[0])
