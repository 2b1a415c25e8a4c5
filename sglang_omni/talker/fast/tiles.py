"""How the fused products are cut, by shape: found by measurement on an H200."""

from sglang_omni.talker.kernels.linear import Tile

# With more rows than this cuBLAS is faster than the fused kernels.
FEW_ROWS = 128
# With fewer than this, products in eight bits do not pay for bringing their rows to eight bits.
FP8_ROWS = 1024


def tile_for(rows: int, outputs: int, inputs: int, *, split: bool = False) -> Tile:
    """The tile for x [rows, inputs] times weight [outputs, inputs].

    So few rows are bound by reading the weight, hence many narrow tiles; where `split`, a long sum
    is shared out as well.
    """
    if rows > 16:
        return _for_tens_of_rows(outputs, inputs, split)
    if outputs >= 4096:
        return Tile(16, 32, 128, warps=4, stages=4)
    if split and inputs >= 4096:
        return Tile(16, 32, 128, split=8, warps=4, stages=4)
    return Tile(16, 16, 128, warps=2, stages=5)


def _for_tens_of_rows(outputs: int, inputs: int, split: bool) -> Tile:
    if split and inputs >= 4096:
        return Tile(64, 32, 128, split=4, warps=4, stages=4)
    if outputs >= 2048:
        return Tile(64, 64, 128, warps=4, stages=4)
    return Tile(64, 16, 128, warps=4, stages=4)
