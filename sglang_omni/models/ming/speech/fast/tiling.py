"""Tilings of the fused matrix products and attention by shape, measured on an H200.

`benchmarks.talker.tune_kernels` measures the named tilings.
"""

from sglang_omni.models.ming.speech.kernels.attention import AttentionTiling
from sglang_omni.models.ming.speech.kernels.linear import LinearTile

# With more rows, cuBLAS is faster than the fused kernels.
MAX_SMALL_BATCH_ROWS = 128
# With fewer rows, quantizing them costs more time than FP8 products save.
MIN_FP8_ROWS = 1024

# Products of the flow model for one stream, 74 rows.
FLOW_QKV = LinearTile(64, 64, 128, warps=4, stages=4)
FLOW_OUT = LinearTile(64, 32, 128, warps=4, stages=5)
FLOW_UP = LinearTile(64, 64, 128, warps=4, stages=4)
FLOW_DOWN = LinearTile(128, 32, 64, split=4, warps=8, stages=6)
FLOW_TILES = {
    (3072, 1024): FLOW_QKV,
    (1024, 1024): FLOW_OUT,
    (4096, 1024): FLOW_UP,
    (1024, 4096): FLOW_DOWN,
}
FLOW_ROWS = range(65, MAX_SMALL_BATCH_ROWS + 1)

FEW_SEQUENCES = AttentionTiling(heads=1, warps=4, stages=2)
# Four heads per program: the rows of the next head load while one is computed. Measured at
# MIN_MANY_SEQUENCES sequences; fewer sequences would give too few programs.
MANY_SEQUENCES = AttentionTiling(heads=4, warps=4)
MIN_MANY_SEQUENCES = 256
SHORT_SEQUENCES = AttentionTiling(heads=1, warps=1)


def select_linear_tile(rows: int, outputs: int, inputs: int, *, split: bool = False) -> LinearTile:
    """Return the tile for x [rows, inputs] times weight [outputs, inputs].

    Small batches are bound by reading the weight, hence many narrow tiles. With `split`, long sums
    are split over programs (split-K).
    """
    if rows in FLOW_ROWS and (outputs, inputs) in FLOW_TILES:
        return FLOW_TILES[outputs, inputs]
    if rows > 16:
        return _select_medium_tile(outputs, inputs, split)
    if outputs >= 4096:
        return LinearTile(16, 32, 128, warps=4, stages=4)
    if split and inputs >= 4096:
        return LinearTile(16, 32, 128, split=8, warps=4, stages=4)
    return LinearTile(16, 16, 128, warps=2, stages=5)


def _select_medium_tile(outputs: int, inputs: int, split: bool) -> LinearTile:
    if split and inputs >= 4096:
        return LinearTile(64, 32, 128, split=4, warps=4, stages=4)
    if outputs >= 2048:
        return LinearTile(64, 64, 128, warps=4, stages=4)
    return LinearTile(64, 16, 128, warps=4, stages=4)


def select_attention_tiling(sequences: int, length: int, heads: int) -> AttentionTiling:
    """Return the attention tiling for a number of sequences, their length and heads."""
    if length <= 16:
        return SHORT_SEQUENCES
    is_large_batch = sequences >= MIN_MANY_SEQUENCES and heads % MANY_SEQUENCES.heads == 0
    return MANY_SEQUENCES if is_large_batch else FEW_SEQUENCES
