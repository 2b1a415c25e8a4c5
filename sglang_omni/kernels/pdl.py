"""Programmatic dependent launch (PDL): a kernel starts while the previous one still runs.

Small kernels take as long to launch as to run. With PDL, a kernel sets itself up and prefetches its
weights before it waits for the output of the previous kernel. Hopper and later GPUs support it.
"""

import os

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

LINE = 64
"""Elements per cache line, for 16-bit types."""
PREFETCH_PROGRAMS = 132
"""Programs of a kernel that prefetch a weight: the multiprocessors of an H200."""


def supports_pdl() -> bool:
    """Return whether the current GPU supports PDL."""
    if os.environ.get("TRITON_INTERPRET") == "1" or not torch.cuda.is_available():
        return False
    return torch.cuda.get_device_capability()[0] >= 9


@triton.jit
def wait_for_inputs(USE_PDL: tl.constexpr):  # type: ignore[no-untyped-def]
    """Wait until all previous kernels have written their output, and let the next one start.

    A kernel with PDL must not read the output of other kernels, nor write, before this call.
    """
    if USE_PDL:
        # The reverse order starts the next kernel earlier, but was slower: the kernels compete.
        gdc_wait()
        gdc_launch_dependents()


@triton.jit
def prefetch_lines(pointers):  # type: ignore[no-untyped-def]
    """Prefetch the cache lines at these addresses into the L2 cache."""
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;",
        "=r,l",
        [pointers.to(tl.int64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def prefetch_part(data, num_lines, part, num_parts):  # type: ignore[no-untyped-def]
    """Prefetch part `part` of `num_parts` of `data` into the L2 cache for a later kernel.

    `data` are bytes, in `num_lines` cache lines of 128 bytes.
    """
    lines_per_part = (num_lines + num_parts - 1) // num_parts
    end = tl.minimum((part + 1) * lines_per_part, num_lines)
    for start in range(part * lines_per_part, end, 128):
        line = tl.minimum(start + tl.arange(0, 128), end - 1)
        prefetch_lines(data + line.to(tl.int64) * 128)


def view_as_bytes(weight: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Return the bytes of a contiguous weight and its number of cache lines.

    They are the first arguments of `prefetch_part`.
    """
    assert weight.is_contiguous()
    flat = weight.detach().view(torch.uint8)
    return flat, flat.numel() // 128
