"""Split-K reduction: several programs share a sum, so that few rows still fill a GPU."""

import torch
import triton
import triton.language as tl

MAX_TILES = 4096


class Workspace:
    """The workspace for partial sums, shared by all kernels of one CUDA stream."""

    def __init__(self, num_elements: int, device: torch.device) -> None:
        self.partial = torch.empty(num_elements, device=device, dtype=torch.float32)
        self.arrived = torch.zeros(MAX_TILES, device=device, dtype=torch.int32)


@triton.jit
def reduce_split_k(  # type: ignore[no-untyped-def]
    acc,
    partial,
    arrived,
    offsets,
    mask,
    split_index,
    stride,
    SPLIT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Store one of SPLIT partial sums, and reduce them if it is the last to arrive.

    The partial sums are added in a fixed order, so results are deterministic.

    Args:
        acc: This program's partial sum [BM, BN].
        partial: The workspace for partial sums, `stride` elements apart.
        arrived: The tile's counter of partial sums, which is 0 before and after.
        offsets: Offsets of the tile's elements [BM, BN] in a partial sum.
        mask: Which elements of the tile exist [BM, BN].
        split_index: The index of this partial sum.
        stride: The number of elements of a partial sum.
        SPLIT: The number of partial sums.
        BM: The number of rows of the tile.
        BN: The number of columns of the tile.

    Returns:
        The whole sum, and whether this program was the last. Otherwise the sum is not complete.
    """
    tl.store(partial + split_index * stride + offsets, acc, mask=mask)
    tl.debug_barrier()
    last = tl.atomic_add(arrived, 1, sem="acq_rel") == SPLIT - 1
    if last:
        acc = tl.zeros((BM, BN), tl.float32)
        for index in range(SPLIT):
            acc += tl.load(
                partial + index * stride + offsets, mask=mask, other=0.0, cache_modifier=".cg"
            )
        tl.store(arrived, 0)
    return acc, last
