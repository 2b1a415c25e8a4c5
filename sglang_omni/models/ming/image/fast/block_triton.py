"""Triton kernels of `BlockOps`: one pass over the rows each, in float32, rounded once.

With FP8, a kernel finds the largest magnitude of a row and stores the row in FP8 with its scale.
"""

import triton
import triton.language as tl


@triton.jit
def _store_row(  # type: ignore[no-untyped-def]
    values, out, scales, row, offs, mask, FP8: tl.constexpr
):
    """Store a row, in FP8 with its scale or in the dtype of `out`."""
    if FP8:
        amax = tl.maximum(tl.max(tl.abs(values), axis=0), 1e-12)
        tl.store(scales + row, amax / 448.0)
        values = values * (448.0 / amax)
    tl.store(out + offs, values.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _normalize_row(  # type: ignore[no-untyped-def]
    values, gain, scale, item, cols, mask, eps, WIDTH: tl.constexpr, HAS_SCALE: tl.constexpr
):
    """Return a row normalised, times the gain, times the item's scale."""
    gains = tl.load(gain + cols, mask=mask, other=0.0).to(tl.float32)
    if HAS_SCALE:
        gains *= tl.load(scale + item * WIDTH + cols, mask=mask, other=0.0).to(tl.float32)
    return values * tl.rsqrt(tl.sum(values * values, axis=0) / WIDTH + eps) * gains


@triton.jit
def norm_kernel(  # type: ignore[no-untyped-def]
    x,
    gain,
    scale,
    out,
    scales,
    rows_per_item,
    eps,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    FP8: tl.constexpr,
):
    """Normalise one row."""
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < WIDTH
    offs = row.to(tl.int64) * WIDTH + cols
    values = tl.load(x + offs, mask=mask, other=0.0).to(tl.float32)
    item = row // rows_per_item
    values = _normalize_row(values, gain, scale, item, cols, mask, eps, WIDTH, HAS_SCALE)
    _store_row(values, out, scales, row, offs, mask, FP8)


@triton.jit
def add_norm_kernel(  # type: ignore[no-untyped-def]
    x,
    y,
    gain,
    scale,
    next_gain,
    next_scale,
    out,
    scales,
    rows_per_item,
    eps,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    HAS_NEXT: tl.constexpr,
    FP8: tl.constexpr,
):
    """Add one row of `y`, normalised, to `x`, and normalise the sum."""
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < WIDTH
    offs = row.to(tl.int64) * WIDTH + cols
    values = tl.load(y + offs, mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(x + offs, mask=mask, other=0.0).to(tl.float32)
    item = row // rows_per_item
    values = _normalize_row(values, gain, scale, item, cols, mask, eps, WIDTH, HAS_SCALE)
    total = (residual + values).to(x.dtype.element_ty)
    tl.store(x + offs, total, mask=mask)
    if HAS_NEXT:
        values = total.to(tl.float32)
        values = _normalize_row(
            values, next_gain, next_scale, item, cols, mask, eps, WIDTH, HAS_SCALE
        )
        _store_row(values, out, scales, row, offs, mask, FP8)


@triton.jit
def rotate_kernel(  # type: ignore[no-untyped-def]
    qkv,
    gains,
    cos,
    sin,
    positions,
    eps,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Normalise and rotate the queries, or the keys, of one row. Pairs (2j, 2j + 1) rotate."""
    row, part = tl.program_id(0), tl.program_id(1)
    heads, cols = tl.arange(0, BLOCK_HEADS)[:, None], tl.arange(0, BLOCK)
    mask = (heads < HEADS) & (cols < WIDTH)[None, :]
    offs = (row.to(tl.int64) * 3 + part) * HEADS * WIDTH + heads * WIDTH + cols[None, :]
    values = tl.load(qkv + offs, mask=mask, other=0.0).to(tl.float32)
    gain = tl.load(gains + part * WIDTH + cols, mask=cols < WIDTH, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(values * values, axis=1) / WIDTH + eps)
    values = values * inverse[:, None] * gain[None, :]
    pairs = tl.arange(0, BLOCK // 2)
    table = (row % positions) * (WIDTH // 2) + pairs
    cosines = tl.load(cos + table, mask=pairs < WIDTH // 2, other=0.0)[None, :]
    sines = tl.load(sin + table, mask=pairs < WIDTH // 2, other=0.0)[None, :]
    even, odd = tl.split(tl.reshape(values, (BLOCK_HEADS, BLOCK // 2, 2)))
    rotated = tl.join(even * cosines - odd * sines, even * sines + odd * cosines)
    rotated = tl.reshape(rotated, (BLOCK_HEADS, BLOCK))
    tl.store(qkv + offs, rotated.to(qkv.dtype.element_ty), mask=mask)


@triton.jit
def gate_kernel(  # type: ignore[no-untyped-def]
    gate_up, out, scales, WIDTH: tl.constexpr, BLOCK: tl.constexpr, FP8: tl.constexpr
):
    """Compute one block of one row; with FP8, the block is the row."""
    row, cols = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < WIDTH
    offs = row.to(tl.int64) * WIDTH + cols
    source = gate_up + row.to(tl.int64) * (2 * WIDTH) + cols
    gate = tl.load(source, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(source + WIDTH, mask=mask, other=0.0).to(tl.float32)
    _store_row(gate * tl.sigmoid(gate) * up, out, scales, row, offs, mask, FP8)


@triton.jit
def quantize_kernel(  # type: ignore[no-untyped-def]
    x, out, scales, WIDTH: tl.constexpr, BLOCK: tl.constexpr
):
    """Quantize one row."""
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < WIDTH
    offs = row.to(tl.int64) * WIDTH + cols
    values = tl.load(x + offs, mask=mask, other=0.0).to(tl.float32)
    _store_row(values, out, scales, row, offs, mask, True)
