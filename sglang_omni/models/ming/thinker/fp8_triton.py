"""Quantize rows to FP8 as SGLang does: one scale per token and block of 128 columns.

The plain form is `fp8.quantize_weight`, applied per row.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK

FP8_MAX = tl.constexpr(448.0)
"""Largest value of float8_e4m3fn."""
BLOCKS_PER_PROGRAM = 8


@triton.jit
def to_fp8(values):  # type: ignore[no-untyped-def]
    """Quantize float32 [blocks, columns]; return float8_e4m3fn values and scales [blocks]."""
    # The minimum gives a block of zeros a scale too.
    scale = tl.maximum(tl.max(tl.abs(values), axis=1), 1e-10) / FP8_MAX
    return (values * (1.0 / scale)[:, None]).to(tl.float8e4nv), scale


@triton.jit
def quantize_blocks(  # type: ignore[no-untyped-def]
    x, quantized, scales, token, first, K: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr
):
    """Quantize BLOCKS blocks of a token, from block `first` on."""
    blocks = first + tl.arange(0, BLOCKS)
    block_mask = blocks < K // BLOCK
    offs = token * K + blocks[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x_f32 = tl.load(x + offs, mask=block_mask[:, None], other=0.0).to(tl.float32)
    values, block_scales = to_fp8(x_f32)
    tl.store(quantized + offs, values, mask=block_mask[:, None])
    tl.store(scales + token * (K // BLOCK) + blocks, block_scales, mask=block_mask)


@triton.jit
def _quantize_rows_kernel(  # type: ignore[no-untyped-def]
    x,
    quantized,
    scales,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    PDL: tl.constexpr,
):
    """Quantize BLOCKS blocks of one row."""
    token, part = tl.program_id(0), tl.program_id(1)
    wait_for_inputs(PDL)
    quantize_blocks(x, quantized, scales, token, part * BLOCKS, K, BLOCK, BLOCKS)


def allocate_fp8_rows(rows: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Allocate FP8 rows: float8_e4m3fn [rows, width] and float32 scales [rows, width / 128]."""
    values = torch.empty(rows, width, dtype=torch.float8_e4m3fn, device=device)
    return values, torch.empty(rows, width // BLOCK, dtype=torch.float32, device=device)


def quantize_rows(x: Tensor, pdl: bool = False) -> tuple[Tensor, Tensor]:
    """Quantize x [rows, K], rows >= 1, to float8_e4m3fn and float32 scales [rows, K / 128].

    With `pdl`, the kernel uses programmatic dependent launch.
    """
    assert x.is_contiguous()
    assert x.shape[1] % BLOCK == 0
    rows, width = x.shape
    values, scales = allocate_fp8_rows(rows, width, x.device)
    parts = triton.cdiv(scales.shape[1], BLOCKS_PER_PROGRAM)
    _quantize_rows_kernel[(rows, parts)](
        x,
        values,
        scales,
        K=width,
        BLOCK=BLOCK,
        BLOCKS=BLOCKS_PER_PROGRAM,
        PDL=pdl,
        num_warps=1,
        launch_pdl=pdl,
    )
    return values, scales
