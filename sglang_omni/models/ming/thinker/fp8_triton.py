"""Rows in eight bits: what SGLang's quantisation per token and block of 128 columns does.

The plain form is `fp8.quantise` row by row.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK

LARGEST = tl.constexpr(448.0)
"""Of float8_e4m3fn."""
BLOCKS_PER_PROGRAM = 8


@triton.jit
def to_eight_bits(values):  # type: ignore[no-untyped-def]
    """Blocks [blocks, columns] in float32 as float8_e4m3fn, and the scale [blocks] of each."""
    # A block of zeros has a scale too.
    scale = tl.maximum(tl.max(tl.abs(values), axis=1), 1e-10) / LARGEST
    return (values * (1.0 / scale)[:, None]).to(tl.float8e4nv), scale


@triton.jit
def quantise_blocks(  # type: ignore[no-untyped-def]
    x, quantised, scales, token, first, K: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr
):
    """Blocks of a token from `first` on in eight bits."""
    blocks = first + tl.arange(0, BLOCKS)
    exists = blocks < K // BLOCK
    at = token * K + blocks[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    held = tl.load(x + at, mask=exists[:, None], other=0.0).to(tl.float32)
    made, factors = to_eight_bits(held)
    tl.store(quantised + at, made, mask=exists[:, None])
    tl.store(scales + token * (K // BLOCK) + blocks, factors, mask=exists)


@triton.jit
def _rows_kernel(  # type: ignore[no-untyped-def]
    x,
    quantised,
    scales,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    PDL: tl.constexpr,
):
    """BLOCKS blocks of one row."""
    token, part = tl.program_id(0), tl.program_id(1)
    wait_for_inputs(PDL)
    quantise_blocks(x, quantised, scales, token, part * BLOCKS, K, BLOCK, BLOCKS)


def empty_rows(rows: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Room for rows in eight bits: float8_e4m3fn [rows, width], float32 [rows, width / 128]."""
    values = torch.empty(rows, width, dtype=torch.float8_e4m3fn, device=device)
    return values, torch.empty(rows, width // BLOCK, dtype=torch.float32, device=device)


def quantise_rows(x: Tensor, pdl: bool = False) -> tuple[Tensor, Tensor]:
    """Rows x [rows, K], one at least, as float8_e4m3fn, and scales [rows, K / 128] in float32.

    Where `pdl`, this starts before the kernel in front has ended.
    """
    assert x.is_contiguous() and x.shape[1] % BLOCK == 0
    rows, width = x.shape
    values, scales = empty_rows(rows, width, x.device)
    parts = triton.cdiv(scales.shape[1], BLOCKS_PER_PROGRAM)
    _rows_kernel[(rows, parts)](
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
