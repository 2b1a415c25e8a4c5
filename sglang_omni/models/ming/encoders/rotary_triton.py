"""Rotary embedding of queries and keys in one pass over their memory, as a Triton kernel."""

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
    """One patch: every query head and every key head, which lie one after the other."""
    patch = tl.program_id(0).to(tl.int64)
    heads = tl.arange(0, HEAD_BLOCK)[:, None]
    places = tl.arange(0, HALF_BLOCK)[None, :]
    inside = (heads < HEADS) & (places < HALF)
    first_at = qkv + patch * row_stride + heads * (2 * HALF) + places
    angle = patch * HALF + places
    c = tl.load(cos + angle, mask=places < HALF, other=0.0)
    s = tl.load(sin + angle, mask=places < HALF, other=0.0)
    first = tl.load(first_at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(first_at + HALF, mask=inside, other=0.0).to(tl.float32)
    dtype = qkv.dtype.element_ty
    tl.store(first_at, (first * c - second * s).to(dtype), mask=inside)
    tl.store(first_at + HALF, (second * c + first * s).to(dtype), mask=inside)


def rotate_qkv_in_place(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rotate q and k inside qkv [patches, 3, heads, head_dim]; return views of q, k and v.

    cos and sin are float32 [patches, head_dim / 2], contiguous, as qkv must be.
    """
    patches, _, heads, head_dim = qkv.shape
    assert qkv.is_contiguous() and cos.is_contiguous() and sin.is_contiguous()
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
