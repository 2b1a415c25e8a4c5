"""Programmatic dependent launch: a kernel starts while the one before it still runs.

Small kernels spend as long starting as working. A kernel launched this way sets itself up, and
asks for its weights, before it waits for what the kernel before it writes. Hopper and later.
"""

import os

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


def _supported() -> bool:
    if (
        os.environ.get("NOCHAIN")
        or os.environ.get("TRITON_INTERPRET") == "1"
        or not torch.cuda.is_available()
    ):
        return False
    return torch.cuda.get_device_capability()[0] >= 9


CHAINED = _supported()
"""Whether kernels are launched so; every kernel that is must call `wait_for_inputs`."""


@triton.jit
def wait_for_inputs(CHAINED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Wait until everything before this kernel is written, and let the next one start."""
    if CHAINED:
        gdc_wait()
        gdc_launch_dependents()


@triton.jit
def prefetch(pointers, CHAINED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Ask for the cache lines at these addresses; harmless where it comes too late."""
    if CHAINED:
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.u32 $0, 0;",
            "=r,l",
            [pointers.to(tl.int64)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
