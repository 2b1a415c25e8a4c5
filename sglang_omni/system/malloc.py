"""Configures the C allocator to return the memory of large bodies and files to the system."""

import ctypes

LARGE_BYTES = 256 << 10
MAX_ARENAS = 2
# The most that glibc takes.
_MAX_MMAP_THRESHOLD = 32 << 20
_KEPT_BYTES = 64 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def use_mmap_for_large_blocks() -> None:
    """Have the C library allocate blocks of `LARGE_BYTES` or more by mmap, and use few arenas.

    Call it before threads start. By default glibc raises the mmap threshold when a large block is
    freed, and keeps later blocks. It also has up to eight arenas for each core, which threads fill
    one after the other. A few uploads would leave hundreds of megabytes allocated.
    """
    # musl, for example, has no `mallopt` and does not need it.
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_ARENA_MAX, MAX_ARENAS)


def keep_freed_blocks() -> None:
    """Have the C library keep up to 64 MB of freed memory for the next large blocks.

    For a process that needs buffers of a megabyte again and again: the kernel would clear each of
    their pages anew at a page fault.
    """
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAX_MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_ARENA_MAX, MAX_ARENAS)
