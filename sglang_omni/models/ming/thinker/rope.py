"""Partial 3-D rotary embedding ("video_rope").

The leading `2 * sum(section)` dimensions of a head are rotated in halves. Of their frequencies
the first h + w alternate between the h and the w row of the position, the last t follow time.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def frequency_rows(section: Sequence[int]) -> list[int]:
    """Row (0 = t, 1 = h, 2 = w) of each frequency for a section (t, h, w), h equal to w."""
    time, height, width = section
    return [1 + index % 2 for index in range(height + width)] + [0] * time


def inverse_frequencies(rotary_dim: int, theta: float) -> Tensor:
    """`theta^(-2k/rotary_dim)` in float32, shape [rotary_dim / 2]."""
    exponent = torch.arange(0, rotary_dim, 2, dtype=torch.float32) / rotary_dim
    return 1.0 / theta**exponent


def cos_sin(positions: Tensor, inv_freq: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Tables [tokens, rotary_dim / 2] in float32 from integer positions [3, tokens].

    Positions may be negative, so the tables are computed, never looked up.
    """
    angles = (positions[rows].float().T * inv_freq).contiguous()
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the leading dimensions of x [tokens, heads, head_dim]; the rest passes through."""
    half = cos.shape[-1]
    first, second, rest = x.split([half, half, x.shape[-1] - 2 * half], dim=-1)
    cos, sin = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)
