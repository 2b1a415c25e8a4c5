"""Building blocks of the small-batch matrix kernels: one output tile, and fused norms.

Norms are not kernels of their own: a product before a norm stores the sums of squares and
multiplies by the gain, and the product after it divides by the root. What the end of a tile needs
is loaded before the product, which hides the latency.
"""

import triton
import triton.language as tl


@triton.jit
def gelu_tanh(x):  # type: ignore[no-untyped-def]
    """Compute GELU in its tanh form; tanh(z) = 2 sigmoid(2 z) - 1."""
    z = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return x * tl.sigmoid(2.0 * z)


@triton.jit
def load_row(values, cols, col_mask):  # type: ignore[no-untyped-def]
    """Load a bias or a gain at these columns as float32."""
    return tl.load(values + cols, mask=col_mask, other=0.0).to(tl.float32)


@triton.jit
def load_squares(squares, rows, row_mask, PARTS: tl.constexpr, PARTS_PAD: tl.constexpr):  # type: ignore[no-untyped-def]
    """Load the partial sums of squares of rows, [rows, PARTS_PAD]."""
    parts = tl.arange(0, PARTS_PAD)
    mask = row_mask[:, None] & (parts[None, :] < PARTS)
    return tl.load(squares + rows[:, None] * PARTS + parts[None, :], mask=mask, other=0.0)


@triton.jit
def compute_inverse_rms(parts, K, eps):  # type: ignore[no-untyped-def]
    """Return the inverse root mean squares [rows, 1] of rows of K values, from their parts."""
    return tl.rsqrt(tl.sum(parts, axis=1) / K + eps)[:, None]


@triton.jit
def multiply_tile(  # type: ignore[no-untyped-def]
    x,
    weight,
    rows,
    row_mask,
    cols,
    start,
    N,
    K: tl.constexpr,
    SPAN: tl.constexpr,
    GATED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Compute sums [BM, BN] over SPAN of K from `start` on, for the weight rows `cols`.

    With GATED, the second result holds the sums for the weight rows `cols` + N.
    """
    acc = tl.zeros((BM, BN), tl.float32)
    gated = tl.zeros((BM, BN), tl.float32)
    for step in range(0, SPAN, BK):
        ks = start + step + tl.arange(0, BK)
        k_in = ks < K
        a = tl.load(
            x + rows[:, None] * K + ks[None, :], mask=row_mask[:, None] & k_in[None, :], other=0.0
        )
        offs = cols[:, None] * K + ks[None, :]
        mask = (cols[:, None] < N) & k_in[None, :]
        b = tl.load(weight + offs, mask=mask, other=0.0)
        acc = tl.dot(a, tl.trans(b), acc, input_precision=PRECISION)
        if GATED:
            up = tl.load(weight + N * K + offs, mask=mask, other=0.0)
            gated = tl.dot(a, tl.trans(up), gated, input_precision=PRECISION)
    return acc, gated


@triton.jit
def store_norm_input(result, gain, scaled, squares, offs, mask, rows, row_mask, part, parts):  # type: ignore[no-untyped-def]
    """Store the input of a fused norm with `gain`, as part number `part` of `parts`."""
    x_f32 = result.to(tl.float32)
    tl.store(scaled + offs, (x_f32 * gain[None, :]).to(result.dtype), mask=mask)
    tl.store(squares + rows * parts + part, tl.sum(x_f32 * x_f32, axis=1), mask=row_mask)
