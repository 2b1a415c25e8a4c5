"""Rotary embedding of the vision transformer: the plain form. The kernel is `rotary_triton`."""

from collections.abc import Callable

import torch
from torch import Tensor

# Maps qkv [patches, 3, heads, head_dim], cos and sin to rotated q, rotated k and v, each [patches,
# heads, head_dim]. May reuse the memory of qkv.
RotateQKV = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate x [patches, heads, head_dim] in halves by cos, sin [patches, head_dim / 2].

    Computes in float32 and casts back to the dtype of x.
    """
    first, second = x.float().chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return rotated.to(x.dtype)


def rotate_qkv_reference(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `RotateQKV` in plain PyTorch."""
    q, k, v = qkv.unbind(1)
    return apply_rotary(q, cos, sin), apply_rotary(k, cos, sin), v


def select_rotary_kernel(device: torch.device) -> RotateQKV:
    """Return the Triton kernel on CUDA, which moves a tenth of the memory, else the plain form."""
    if device.type != "cuda":
        return rotate_qkv_reference
    from sglang_omni.models.ming.encoders.rotary_triton import rotate_qkv_in_place

    return rotate_qkv_in_place
