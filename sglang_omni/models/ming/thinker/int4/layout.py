"""Four-bit layout of the thinker's experts: sizes, tensors and their names. No torch.

The matrices of routed and shared experts are in four bits, in groups of 128 input columns
(`int4.weights` has the format). What FP8 checkpoints store in FP8 besides, attention and dense
layers, is stored as there. Routers, norms, embeddings, the head and everything outside the
thinker's layers keep their dtype.
"""

from sglang_omni.protocol.errors import CheckpointError

GROUP = 128
"""Input columns that share a scale."""
TILE_ROWS = 64
"""Output rows of a contiguous tile."""
VALUES_PER_WORD = 4
WORDS = GROUP // VALUES_PER_WORD
"""Words of one row of a group."""
MAX_VALUE = 15
SYMMETRIC_ZERO = 8


def check_int4_shape(shape: tuple[int, ...]) -> None:
    """Raise `CheckpointError` if a matrix [rows, columns] cannot be stored in four bits."""
    if len(shape) != 2 or shape[0] % TILE_ROWS or shape[1] % GROUP:
        raise CheckpointError(
            f"a matrix of shape {list(shape)} cannot be quantized to four bits; its rows must be "
            f"a multiple of {TILE_ROWS} and its columns of {GROUP}"
        )
