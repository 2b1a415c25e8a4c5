"""One tile of a product with what surrounds it, as kernels of few rows are made of.

Norms are not kernels of their own: a product that ends in one notes the sums of squares and
multiplies by the gain, and the product after it divides by the root. What the end of a tile needs
is read before the product, which then hides the wait for it.
"""

import triton
import triton.language as tl


@triton.jit
def gelu_tanh(x):  # type: ignore[no-untyped-def]
    """GELU in its tanh form; tanh(z) = 2 sigmoid(2 z) - 1."""
    z = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return x * tl.sigmoid(2.0 * z)


@triton.jit
def load_row(values, cols, col_in):  # type: ignore[no-untyped-def]
    """A bias or a gain at these columns, float32."""
    return tl.load(values + cols, mask=col_in, other=0.0).to(tl.float32)


@triton.jit
def load_squares(squares, rows, row_in, PARTS: tl.constexpr, PARTS_PAD: tl.constexpr):  # type: ignore[no-untyped-def]
    """The parts [rows, PARTS_PAD] of the sums of squares of rows."""
    parts = tl.arange(0, PARTS_PAD)
    inside = row_in[:, None] & (parts[None, :] < PARTS)
    return tl.load(squares + rows[:, None] * PARTS + parts[None, :], mask=inside, other=0.0)


@triton.jit
def compute_inverse_rms(parts, K, eps):  # type: ignore[no-untyped-def]
    """The reciprocal roots [rows, 1] of the mean squares of rows of K, from their parts."""
    return tl.rsqrt(tl.sum(parts, axis=1) / K + eps)[:, None]


@triton.jit
def multiply_tile(  # type: ignore[no-untyped-def]
    x,
    weight,
    rows,
    row_in,
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
    """Sums [BM, BN] over SPAN of K from `start` on: of the weight's rows `cols`, and where GATED
    of those N further down."""
    acc = tl.zeros((BM, BN), tl.float32)
    gated = tl.zeros((BM, BN), tl.float32)
    for step in range(0, SPAN, BK):
        ks = start + step + tl.arange(0, BK)
        k_in = ks < K
        a = tl.load(
            x + rows[:, None] * K + ks[None, :], mask=row_in[:, None] & k_in[None, :], other=0.0
        )
        at = cols[:, None] * K + ks[None, :]
        inside = (cols[:, None] < N) & k_in[None, :]
        b = tl.load(weight + at, mask=inside, other=0.0)
        acc = tl.dot(a, tl.trans(b), acc, input_precision=PRECISION)
        if GATED:
            up = tl.load(weight + N * K + at, mask=inside, other=0.0)
            gated = tl.dot(a, tl.trans(up), gated, input_precision=PRECISION)
    return acc, gated


@triton.jit
def store_norm_input(made, gain, scaled, squares, at, inside, rows, row_in, part, parts):  # type: ignore[no-untyped-def]
    """Note of finished values what the norm after them, of `gain` at their columns, needs, as part
    number `part` of `parts`."""
    wide = made.to(tl.float32)
    tl.store(scaled + at, (wide * gain[None, :]).to(made.dtype), mask=inside)
    tl.store(squares + rows * parts + part, tl.sum(wide * wide, axis=1), mask=row_in)
