"""Quantize weights to FP8 in blocks of 128 x 128, and dequantize them."""

import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.protocol.errors import CheckpointError

FP8_MAX = torch.finfo(torch.float8_e4m3fn).max
# Scale of a block of zeros.
MIN_SCALE = 1e-12


def quantize_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize a weight [rows, columns] to float8_e4m3fn with float32 scales per block.

    Returns:
        Values [rows, columns] and scales [row blocks, column blocks]; a value times the scale of
        its block is the weight.

    Raises:
        CheckpointError: The sizes are not multiples of the block size.
    """
    _check_shape(tuple(weight.shape))
    # In place on one copy, because a checkpoint has 200 GB of weights.
    blocks = _view_blocks(weight.to(torch.float32, copy=True))
    min_values, max_values = blocks.aminmax(dim=-1)
    max_abs = torch.maximum(max_values, -min_values).amax(dim=1)
    scale = (max_abs / FP8_MAX).clamp_(min=MIN_SCALE)
    blocks.div_(scale[:, None, :, None]).clamp_(-FP8_MAX, FP8_MAX)
    return blocks.to(torch.float8_e4m3fn).reshape(weight.shape), scale


def dequantize_weight(values: Tensor, scale: Tensor) -> Tensor:
    """Return the float32 weight [rows, columns] of quantized values and scales."""
    return (_view_blocks(values.float()) * scale[:, None, :, None]).reshape(values.shape)


def _view_blocks(matrix: Tensor) -> Tensor:
    """Return a view [row blocks, BLOCK, column blocks, BLOCK]."""
    rows, columns = matrix.shape
    return matrix.view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or any(size % BLOCK for size in shape):
        raise CheckpointError(
            f"a matrix of shape {list(shape)} cannot be quantized; "
            f"its sizes must be multiples of {BLOCK}"
        )
