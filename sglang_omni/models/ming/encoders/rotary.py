"""Rotary embedding of the vision transformer: the plain rule. The kernel is `rotary_triton`."""

from collections.abc import Callable

import torch
from torch import Tensor

# (qkv [patches, 3, heads, head_dim], cos, sin) to rotated q, rotated k, v: [patches, heads, dim].
# May use the memory of qkv.
RotateQKV = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate x [patches, heads, head_dim] in halves by cos, sin [patches, head_dim / 2].

    In float32, cast back to the dtype of x.
    """
    first, second = x.float().chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(x.dtype)


def rotate_qkv(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The plain `RotateQKV`."""
    q, k, v = qkv.unbind(1)
    return rotate(q, cos, sin), rotate(k, cos, sin), v


def choose_rotation(device: torch.device) -> RotateQKV:
    """The kernel on CUDA, where the plain rule would move ten times the memory; else the rule."""
    if device.type != "cuda":
        return rotate_qkv
    from sglang_omni.models.ming.encoders.rotary_triton import rotate_qkv_in_place

    return rotate_qkv_in_place
