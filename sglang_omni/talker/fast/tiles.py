"""How the fused products are cut, by shape: found by measurement on an H200."""

from sglang_omni.talker.kernels.linear import Tile

# From this many rows on cuBLAS is faster than the fused kernels.
FEW_ROWS = 600


def tile_for(rows: int, outputs: int, inputs: int, *, whole_rows: bool) -> Tile:
    """The tile for x [rows, inputs] times weight [outputs, inputs].

    `whole_rows` forbids to split the sum, because the rows are normalised on the way.
    """
    if rows <= 16:
        return _thin(outputs, inputs, whole_rows)
    height = 128 if rows > 64 else 64 if rows > 32 else 32
    cols = 32 if outputs >= 2048 else 16
    split = 1 if whole_rows else max(1, inputs // 1024)
    return Tile(height, cols, 128, split, warps=4, stages=3)


def _thin(outputs: int, inputs: int, whole_rows: bool) -> Tile:
    """For a row or a few per stream: bound by reading the weight, so every core should read."""
    cols = 64 if outputs >= 8192 else 16
    split = 1 if whole_rows else max(1, inputs // 1024)
    return Tile(16, cols, 128, split, warps=4, stages=4)
