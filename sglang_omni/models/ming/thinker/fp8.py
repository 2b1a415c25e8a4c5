"""Weights in eight bits, in blocks of 128 x 128, and back."""

import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.protocol.errors import CheckpointError

LARGEST = torch.finfo(torch.float8_e4m3fn).max
# Of a block of zeros.
SMALLEST_SCALE = 1e-12


def quantise(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Values [rows, columns] in float8_e4m3fn and scales [row blocks, column blocks] in float32.

    A value times its block's scale is the weight. Raises `CheckpointError` for sizes that blocks
    do not divide.
    """
    _check(tuple(weight.shape))
    # In place on one copy: a checkpoint is 200 GB of these.
    blocks = _blocks(weight.to(torch.float32, copy=True))
    low, high = blocks.aminmax(dim=-1)
    largest = torch.maximum(high, -low).amax(dim=1)
    scale = (largest / LARGEST).clamp_(min=SMALLEST_SCALE)
    blocks.div_(scale[:, None, :, None]).clamp_(-LARGEST, LARGEST)
    return blocks.to(torch.float8_e4m3fn).reshape(weight.shape), scale


def dequantise(values: Tensor, scale: Tensor) -> Tensor:
    """The float32 weight [rows, columns] of quantised values and scales."""
    return (_blocks(values.float()) * scale[:, None, :, None]).reshape(values.shape)


def _blocks(matrix: Tensor) -> Tensor:
    """A view [row blocks, BLOCK, column blocks, BLOCK]."""
    rows, columns = matrix.shape
    return matrix.view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)


def _check(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or any(size % BLOCK for size in shape):
        raise CheckpointError(f"a matrix of {list(shape)} does not divide into blocks of {BLOCK}")
