"""Rows in eight bits: what SGLang's quantisation per token and block of 128 columns does."""

import triton
import triton.language as tl

LARGEST = tl.constexpr(448.0)
"""Of float8_e4m3fn."""


@triton.jit
def to_eight_bits(values):  # type: ignore[no-untyped-def]
    """Blocks [blocks, columns] in float32 as float8_e4m3fn, and the scale [blocks] of each."""
    # A block of zeros has a scale too.
    scale = tl.maximum(tl.max(tl.abs(values), axis=1), 1e-10) / LARGEST
    return (values * (1.0 / scale)[:, None]).to(tl.float8e4nv), scale
