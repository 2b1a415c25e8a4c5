"""Attention of every position to every position, by the fastest kernel that PyTorch has."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

# cuDNN's kernel uses Hopper's matrix instructions, which the others of PyTorch do not.
KERNELS = [
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
]


@contextmanager
def prefer_fast_attention(device: torch.device) -> Iterator[None]:
    """Within the context, take the first kernel of `KERNELS` that supports the inputs."""
    if device.type == "cpu":
        yield
        return
    with sdpa_kernel(KERNELS, set_priority=True):
        yield


def attend(qkv: Tensor, num_queries: int) -> Tensor:
    """Attend from the first positions to all.

    Args:
        qkv: [items, positions, 3, heads, head width].
        num_queries: Number of positions whose result is wanted.

    Returns:
        [items * num_queries, heads * head width].
    """
    q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
    out = F.scaled_dot_product_attention(q[:, :, :num_queries], k, v)
    return out.transpose(1, 2).reshape(len(qkv) * num_queries, -1)
