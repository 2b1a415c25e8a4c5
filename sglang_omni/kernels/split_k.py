"""Sums that several programs share, so that few rows and a long sum still fill a card."""

import torch
import triton
import triton.language as tl

MAX_TILES = 4096


class Workspace:
    """Scratch memory for split sums, shared by all kernels of one stream."""

    def __init__(self, elements: int, device: torch.device) -> None:
        self.partial = torch.empty(elements, device=device, dtype=torch.float32)
        self.arrived = torch.zeros(MAX_TILES, device=device, dtype=torch.int32)


@triton.jit
def share_sum(  # type: ignore[no-untyped-def]
    acc,
    partial,
    arrived,
    at,
    inside,
    share,
    size,
    SPLIT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Leave one of SPLIT shares of a sum in `partial`, `size` apart: whether it was the last to
    come, and then the whole. Shares are summed in a fixed order, so that sums repeat exactly."""
    tl.store(partial + share * size + at, acc, mask=inside)
    tl.debug_barrier()
    last = tl.atomic_add(arrived, 1, sem="acq_rel") == SPLIT - 1
    if last:
        acc = tl.zeros((BM, BN), tl.float32)
        for other in range(SPLIT):
            acc += tl.load(
                partial + other * size + at, mask=inside, other=0.0, cache_modifier=".cg"
            )
        tl.store(arrived, 0)
    return acc, last
