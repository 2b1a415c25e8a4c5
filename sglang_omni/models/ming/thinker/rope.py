"""Partial 3-D rotary embedding ("video_rope").

The leading `2 * sum(section)` dimensions of a head are rotated in halves. The first h + w
frequencies alternate between the h and the w position, the last t follow the time position.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def assign_frequency_axes(section: Sequence[int]) -> list[int]:
    """Return the axis (0 = t, 1 = h, 2 = w) of each frequency for a section (t, h, w), h == w."""
    time, height, width = section
    return [1 + index % 2 for index in range(height + width)] + [0] * time


def compute_inverse_frequencies(rotary_dim: int, theta: float) -> Tensor:
    """Return `theta^(-2k/rotary_dim)`, float32 [rotary_dim / 2]."""
    exponent = torch.arange(0, rotary_dim, 2, dtype=torch.float32) / rotary_dim
    return 1.0 / theta**exponent


def compute_rotary_tables(
    positions: Tensor, inv_freq: Tensor, axes: Tensor
) -> tuple[Tensor, Tensor]:
    """Return cos and sin, float32 [tokens, rotary_dim / 2], of integer positions [3, tokens].

    Positions may be negative, so the tables are computed instead of looked up.
    """
    angles = (positions[axes].float().T * inv_freq).contiguous()
    return angles.cos(), angles.sin()


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the leading dimensions of x [tokens, heads, head_dim]; the rest is unchanged."""
    half = cos.shape[-1]
    first, second, rest = x.split([half, half, x.shape[-1] - 2 * half], dim=-1)
    cos, sin = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)
