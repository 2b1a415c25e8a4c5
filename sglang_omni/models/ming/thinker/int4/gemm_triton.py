"""Products of bfloat16 rows with the four-bit weights of their experts.

One kernel serves decode steps, which are bound by reading weights, and prefills, whose tiles have
more rows. A program dequantizes a group of 128 columns at a time in registers, multiplies it, and
scales the product. The four values of a word are 32 columns apart, so one shift of all words gives
an operand of adjacent columns; words never move between threads.

With few rows, several programs share the sum over the columns (split-K). They write partial sums
side by side; the kernel that reads the output adds them. The plain form is `weights.multiply_int4`
per expert.
"""

import os
from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.models.ming.thinker.decode_moe_triton import ExpertOrder
from sglang_omni.models.ming.thinker.int4.layout import (
    GROUP,
    SYMMETRIC_ZERO,
    TILE_ROWS,
    VALUES_PER_WORD,
    WORDS,
)
from sglang_omni.models.ming.thinker.int4.weights import Int4Matrix

_INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
_TILE_ROWS, _GROUP, _WORDS = tl.constexpr(TILE_ROWS), tl.constexpr(GROUP), tl.constexpr(WORDS)
_ZERO = tl.constexpr(SYMMETRIC_ZERO)
# Four bits in the lowest bits of 0x4300, which is 128 in bfloat16, are the number 128 + value.
_OFFSET = tl.constexpr(128)
# Two words at a time, because two bfloat16 fill a register.
_UNPACK = tl.constexpr("""{
.reg .b32 word<4>;
shr.b32 word1, $4, 4;
shr.b32 word2, $4, 8;
shr.b32 word3, $4, 12;
lop3.b32 $0, $4, 0x000f000f, 0x43004300, 0xea;
lop3.b32 $1, word1, 0x000f000f, 0x43004300, 0xea;
lop3.b32 $2, word2, 0x000f000f, 0x43004300, 0xea;
lop3.b32 $3, word3, 0x000f000f, 0x43004300, 0xea;
}""")
_UNPACK_AND_SUBTRACT = tl.constexpr(
    _UNPACK.value.removesuffix("}")
    + "".join(f"sub.rn.bf16x2 ${part}, ${part}, $5;\n" for part in range(VALUES_PER_WORD))
    + "}"
)


@dataclass(frozen=True)
class Int4GemmTile:
    """Tiling of a product.

    Attributes:
        cols: Weight rows of a tile.
        warps: Warps of a program.
        stages: Stages of the loads.
        split: Programs that share a sum.
        zero_after: Whether zeros are subtracted from the product of a group, as their product with
            the sum of the rows' numbers, instead of from each weight. That is fewer instructions
            for few rows, and twice the work of the tensor cores.
    """

    cols: int = 64
    warps: int = 4
    stages: int = 4
    split: int = 1
    zero_after: bool = False


@triton.jit
def _unpack(words, offset, SUBTRACT: tl.constexpr, dtype: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return the four values of each word, plus 128.

    With SUBTRACT they are less `offset`, which has the shape of the words.
    """
    if _INTERPRETED:
        # The interpreter runs no assembly.
        less = offset.to(tl.float32) - _OFFSET if SUBTRACT else -_OFFSET
        value_0 = (words & 15).to(tl.float32) - less
        value_1 = (words >> 4 & 15).to(tl.float32) - less
        value_2 = (words >> 8 & 15).to(tl.float32) - less
        value_3 = (words >> 12 & 15).to(tl.float32) - less
        return value_0.to(dtype), value_1.to(dtype), value_2.to(dtype), value_3.to(dtype)
    # All differences of bfloat16 here are exact.
    if SUBTRACT:
        return tl.inline_asm_elementwise(
            _UNPACK_AND_SUBTRACT,
            "=r,=r,=r,=r,r,r",
            [words, offset.to(tl.bfloat16)],
            dtype=(tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=2,
        )
    return tl.inline_asm_elementwise(
        _UNPACK,
        "=r,=r,=r,=r,r",
        [words],
        dtype=(tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16),
        is_pure=True,
        pack=2,
    )


@triton.jit
def _multiply_int4_kernel(  # type: ignore[no-untyped-def]
    rows,
    weight,
    scales,
    zeros,
    expert_weights,
    out,
    slots,
    experts,
    total,
    COUNT,
    N: tl.constexpr,
    K: tl.constexpr,
    SLOTS_PER_ROW: tl.constexpr,
    SPLIT: tl.constexpr,
    SYMMETRIC: tl.constexpr,
    WEIGHTED: tl.constexpr,
    ZERO_AFTER: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute BN columns for the rows of one tile, over one of SPLIT parts of the groups.

    The weight is the first operand, because it stays in registers.
    """
    part, tile, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    wait_for_inputs(PDL)
    # Loaded together, so that a tile waits for memory once. Tiles after the last have any numbers.
    num_slots = tl.load(total)
    expert = tl.load(experts + tile).to(tl.int64)
    slot = tl.load(slots + tile * BM + tl.arange(0, BM))
    if tile * BM < num_slots:
        slot_mask = slot < COUNT
        row = (slot // SLOTS_PER_ROW).to(tl.int64)
        groups: tl.constexpr = K // _GROUP
        first_group = split * (groups // SPLIT)
        cols, word = tl.arange(0, BN), tl.arange(0, _WORDS)
        # Each tile of 64 weight rows has its groups one after the other.
        tile_index = expert * (N // _TILE_ROWS) + part * (BN // _TILE_ROWS) + cols // _TILE_ROWS
        scale_offs = (tile_index * groups + first_group) * _TILE_ROWS + cols % _TILE_ROWS
        scale_ptrs, zero_ptrs = scales + scale_offs, zeros + scale_offs
        w_ptrs = weight + scale_offs[:, None] * _WORDS + word[None, :]
        x_ptrs = rows + row[None, :] * K + first_group * _GROUP + word[:, None]
        x_mask = slot_mask[None, :]
        acc = tl.zeros((BN, BM), tl.float32)
        # Scales are loaded one step ahead, so that they do not stall the step.
        scale = tl.load(scale_ptrs)
        for group in range(groups // SPLIT):
            next_group = tl.minimum(group + 1, groups // SPLIT - 1)
            next_scale = tl.load(scale_ptrs + next_group * _TILE_ROWS)
            words = tl.load(w_ptrs + group * (_TILE_ROWS * _WORDS))
            if SYMMETRIC:
                offset = tl.full((BN,), _ZERO + _OFFSET, tl.float32)
            else:
                offset = tl.load(zero_ptrs + group * _TILE_ROWS).to(tl.float32) + _OFFSET
            w_0, w_1, w_2, w_3 = _unpack(
                words,
                tl.broadcast_to(offset[:, None], (BN, _WORDS)),
                not ZERO_AFTER,
                rows.dtype.element_ty,
            )
            group_ptrs = x_ptrs + group * _GROUP
            x_0 = tl.load(group_ptrs, mask=x_mask, other=0.0)
            x_1 = tl.load(group_ptrs + _WORDS, mask=x_mask, other=0.0)
            x_2 = tl.load(group_ptrs + 2 * _WORDS, mask=x_mask, other=0.0)
            x_3 = tl.load(group_ptrs + 3 * _WORDS, mask=x_mask, other=0.0)
            product = tl.dot(w_0, x_0)
            product = tl.dot(w_1, x_1, product)
            product = tl.dot(w_2, x_2, product)
            product = tl.dot(w_3, x_3, product)
            if ZERO_AFTER:
                ones = tl.full((BN, _WORDS), 1.0, rows.dtype.element_ty)
                row_sums = tl.dot(ones, x_0)
                row_sums = tl.dot(ones, x_1, row_sums)
                row_sums = tl.dot(ones, x_2, row_sums)
                row_sums = tl.dot(ones, x_3, row_sums)
                product -= offset[:, None] * row_sums
            acc += product * scale.to(tl.float32)[:, None]
            scale = next_scale
        if WEIGHTED:
            acc *= tl.load(expert_weights + slot, mask=slot_mask, other=0.0)[None, :]
        out_rows = (slot.to(tl.int64) * SPLIT + split)[None, :]
        out_ptrs = out + out_rows * N + (part * BN + cols)[:, None]
        tl.store(out_ptrs, acc.to(out.dtype.element_ty), mask=x_mask)


def multiply_int4_experts(
    rows: Tensor,
    weight: Int4Matrix,
    order: ExpertOrder,
    height: int,
    out: Tensor,
    tile: Int4GemmTile,
    expert_weights: Tensor | None = None,
    *,
    pdl: bool = False,
) -> None:
    """Multiply rows by the transposed weights of their experts.

    The entries of slot s of `out` add up to the product of row s // (slots / rows), times its entry
    of `expert_weights` if given.

    Args:
        rows: [rows, K], bfloat16 on a GPU.
        weight: Stack of matrices [N, K], one for each expert.
        order: Grouping into tiles of `height` rows.
        height: 8, or a higher power of two.
        out: [slots, tile.split, N].
        tile: Sizes of the tiles.
        expert_weights: float32 [slots].
        pdl: Launch with programmatic dependent launch.
    """
    count, split, n = out.shape
    groups = weight.packed.shape[2]
    assert weight.packed.shape[1] * TILE_ROWS == n
    assert rows.shape[1] == groups * GROUP
    assert split == tile.split
    assert groups % split == 0
    assert n % tile.cols == 0
    assert tile.cols % TILE_ROWS == 0
    assert count % len(rows) == 0
    assert all(tensor.is_contiguous() for tensor in (rows, out, *weight.tensors().values()))
    _multiply_int4_kernel[(n // tile.cols, len(order.experts), split)](
        rows,
        weight.packed,
        weight.scale,
        weight.packed if weight.zero is None else weight.zero,
        weight.scale if expert_weights is None else expert_weights,
        out,
        order.slots,
        order.experts,
        order.total,
        count,
        N=n,
        K=groups * GROUP,
        SLOTS_PER_ROW=count // len(rows),
        SPLIT=split,
        SYMMETRIC=weight.zero is None,
        WEIGHTED=expert_weights is not None,
        ZERO_AFTER=tile.zero_after,
        BM=height,
        BN=tile.cols,
        PDL=pdl,
        num_warps=tile.warps,
        num_stages=tile.stages,
        launch_pdl=pdl,
    )
