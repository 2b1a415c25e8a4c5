"""Between pixels and latents: reference images, decoded images and their final size."""

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from sglang_omni.models.ming.image.sizes import Size


class ImageVAE:
    """The image VAE of a checkpoint: diffusers' `AutoencoderKL` with the latents' scale."""

    def __init__(self, vae: Any) -> None:
        self._vae = vae
        self._scale, self._shift = vae.config.scaling_factor, vae.config.shift_factor
        self._parameter = next(vae.parameters())

    @torch.no_grad()
    def decode(self, latents: Tensor) -> np.ndarray:
        """Return the image, uint8 [height, width, 3], of latents [channels, height, width]."""
        x = latents.to(self._parameter.dtype) / self._scale + self._shift
        return to_uint8(self._vae.decode(x[None], return_dict=False)[0])[0]

    @torch.no_grad()
    def encode(self, pixels: Tensor) -> Tensor:
        """Return latents [channels, height, width] of pixels [3, height, width] in [-1, 1]."""
        x = pixels[None].to(self._parameter.device, self._parameter.dtype)
        mean = self._vae.encode(x, return_dict=False)[0].mode()
        return ((mean - self._shift) * self._scale)[0]


def to_uint8(pixels: Tensor) -> np.ndarray:
    """Convert pixels [batch, 3, height, width] in [-1, 1] to uint8 [batch, height, width, 3]."""
    scaled = (pixels / 2 + 0.5).clamp(0, 1).float() * 255
    return scaled.round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()


def stretch_reference(image: np.ndarray, bucket: Size) -> Tensor:
    """Return a reference image, uint8 [height, width, 3], as pixels [3, *bucket] in [-1, 1]."""
    height, width = bucket
    resized = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(resized)).permute(2, 0, 1).float() / 255
    return (pixels - 0.5) * 2


def resize_output(image: np.ndarray, size: Size) -> np.ndarray:
    """Stretch an image, uint8 [height, width, 3], to its final size."""
    height, width = size
    if image.shape[:2] == size:
        return image
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS))
