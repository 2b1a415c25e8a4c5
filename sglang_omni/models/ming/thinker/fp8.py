"""Quantize weights to FP8 in blocks of 128 x 128, and dequantize them."""

import torch
import torch.nn.functional as F
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


def quantize_head(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize the output head [vocabulary, hidden] as `quantize_weight` does.

    A vocabulary that is no multiple of the block size makes a last block of fewer rows.

    Raises:
        CheckpointError: The hidden size is not a multiple of the block size.
    """
    values, scale = quantize_weight(_pad_rows(weight))
    return values[: len(weight)].contiguous(), scale


def dequantize_weight(values: Tensor, scale: Tensor) -> Tensor:
    """Return the float32 weight [rows, columns] of quantized values and scales.

    The last block may have fewer rows than others.
    """
    blocks = _view_blocks(_pad_rows(values.float())) * scale[:, None, :, None]
    return blocks.reshape(-1, values.shape[1])[: len(values)]


def _pad_rows(matrix: Tensor) -> Tensor:
    """Return a matrix with rows of zeros up to a multiple of the block size."""
    missing = -len(matrix) % BLOCK
    return F.pad(matrix, (0, 0, 0, missing)) if missing else matrix


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
