"""How the fused products are cut, by shape: found by measurement on an H200."""

from sglang_omni.talker.kernels.linear import Tile

# With more rows than this cuBLAS is faster than the fused kernels.
FEW_ROWS = 16


def tile_for(rows: int, outputs: int, inputs: int, *, split: bool = False) -> Tile:
    """The tile for x [rows, inputs] times weight [outputs, inputs].

    So few rows are bound by reading the weight, hence many narrow tiles; where `split`, a long sum
    is shared out as well.
    """
    height = 16 if rows <= 16 else 64
    if outputs >= 4096:
        return Tile(height, 32, 128, warps=4, stages=4)
    if split and inputs >= 4096:
        return Tile(height, 32, 128, split=8, warps=4, stages=4)
    return Tile(height, 16, 128, warps=2 if height == 16 else 4, stages=5)
