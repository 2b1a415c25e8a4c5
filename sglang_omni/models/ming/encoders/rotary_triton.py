"""Triton kernel for the rotary embedding of queries and keys in one pass over their memory."""

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _rotate_kernel(  # type: ignore[no-untyped-def]
    qkv,
    cos,
    sin,
    row_stride,
    HEADS: tl.constexpr,
    HALF: tl.constexpr,
    HEAD_BLOCK: tl.constexpr,
    HALF_BLOCK: tl.constexpr,
):
    """Rotate all query and key heads of one patch; they are adjacent in memory."""
    patch = tl.program_id(0).to(tl.int64)
    heads = tl.arange(0, HEAD_BLOCK)[:, None]
    dims = tl.arange(0, HALF_BLOCK)[None, :]
    mask = (heads < HEADS) & (dims < HALF)
    first_ptrs = qkv + patch * row_stride + heads * (2 * HALF) + dims
    angle_offs = patch * HALF + dims
    c = tl.load(cos + angle_offs, mask=dims < HALF, other=0.0)
    s = tl.load(sin + angle_offs, mask=dims < HALF, other=0.0)
    first = tl.load(first_ptrs, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(first_ptrs + HALF, mask=mask, other=0.0).to(tl.float32)
    dtype = qkv.dtype.element_ty
    tl.store(first_ptrs, (first * c - second * s).to(dtype), mask=mask)
    tl.store(first_ptrs + HALF, (second * c + first * s).to(dtype), mask=mask)


def rotate_qkv_in_place(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rotate q and k in place in qkv [patches, 3, heads, head_dim]; return views of q, k and v.

    `cos` and `sin` are float32 [patches, head_dim / 2]. All arguments must be contiguous.
    """
    patches, _, heads, head_dim = qkv.shape
    assert qkv.is_contiguous()
    assert cos.is_contiguous()
    assert sin.is_contiguous()
    if patches:
        _rotate_kernel[(patches,)](
            qkv,
            cos,
            sin,
            qkv.stride(0),
            HEADS=2 * heads,
            HALF=head_dim // 2,
            HEAD_BLOCK=triton.next_power_of_2(2 * heads),
            HALF_BLOCK=triton.next_power_of_2(head_dim // 2),
        )
    q, k, v = qkv.unbind(1)
    return q, k, v
