"""Programmatic dependent launch: a kernel starts while the one before it still runs.

Small kernels spend as long starting as working. A chained kernel sets itself up, and asks for its
weights, before it waits for what the kernel before it writes. Hopper and later.
"""

import os

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

LINE = 64
"""Elements of a cache line, in the 16-bit types that matter."""


def can_chain() -> bool:
    """Whether kernels can be chained here."""
    if os.environ.get("TRITON_INTERPRET") == "1" or not torch.cuda.is_available():
        return False
    return torch.cuda.get_device_capability()[0] >= 9


@triton.jit
def wait_for_inputs(CHAINED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Wait until everything before this kernel is written, and let the next one start.

    A chained kernel must not touch what others write, nor write anything, before this.
    """
    if CHAINED:
        # The other order, which starts kernels further ahead, was slower: they crowd each other.
        gdc_wait()
        gdc_launch_dependents()


@triton.jit
def prefetch(pointers):  # type: ignore[no-untyped-def]
    """Ask for the cache lines at these addresses."""
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;",
        "=r,l",
        [pointers.to(tl.int64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def fetch(data, lines, part, parts):  # type: ignore[no-untyped-def]
    """Ask for one of so many parts of `data` (bytes), which has `lines` of 128 bytes, so that the
    kernel that reads it finds it in the cache."""
    each = (lines + parts - 1) // parts
    end = tl.minimum((part + 1) * each, lines)
    for first in range(part * each, end, 128):
        line = tl.minimum(first + tl.arange(0, 128), end - 1)
        prefetch(data + line.to(tl.int64) * 128)


def bytes_of(weight: torch.Tensor) -> tuple[torch.Tensor, int]:
    """What `fetch` takes of a contiguous weight: its bytes, and how many lines they are."""
    assert weight.is_contiguous()
    flat = weight.detach().view(torch.uint8)
    return flat, flat.numel() // 128
