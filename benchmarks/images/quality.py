"""How near two images are: PSNR, and SSIM with a Gaussian window of 11 pixels."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

WINDOW, SIGMA = 11, 1.5
MAX_PSNR = 100.0
"""For equal images, whose PSNR is infinite."""
C1, C2 = 0.01**2, 0.03**2


def compute_psnr(one: np.ndarray, other: np.ndarray) -> float:
    """Return decibels for two images, uint8 of one shape."""
    error = float(np.mean((one.astype(np.float64) - other.astype(np.float64)) ** 2))
    return MAX_PSNR if error == 0 else 10 * math.log10(255**2 / error)


def compute_ssim(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean structural similarity (Wang et al. 2004) over positions and channels."""
    x, y = _to_planes(one), _to_planes(other)
    mean_x, mean_y = _blur(x), _blur(y)
    var_x, var_y = _blur(x * x) - mean_x**2, _blur(y * y) - mean_y**2
    covariance = _blur(x * y) - mean_x * mean_y
    similarity = (2 * mean_x * mean_y + C1) * (2 * covariance + C2)
    similarity = similarity / ((mean_x**2 + mean_y**2 + C1) * (var_x + var_y + C2))
    return similarity.mean().item()


def _to_planes(image: np.ndarray) -> Tensor:
    """Return [channels, 1, height, width] in [0, 1], in float64."""
    return torch.from_numpy(image.astype(np.float64) / 255).permute(2, 0, 1)[:, None]


def _blur(planes: Tensor) -> Tensor:
    """Return the local means at the positions whose window lies inside."""
    offsets = torch.arange(WINDOW, dtype=torch.float64) - WINDOW // 2
    weights = torch.exp(-(offsets**2) / (2 * SIGMA**2))
    weights = weights / weights.sum()
    return F.conv2d(F.conv2d(planes, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))
