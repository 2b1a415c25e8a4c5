"""Memory of large bodies and files, which goes back to the system when it is freed."""

import ctypes

LARGE_BYTES = 256 << 10
MAX_ARENAS = 2
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8


def map_large_memory() -> None:
    """Have the C library map every block of `LARGE_BYTES` by itself, for good, and keep the others
    in few arenas. Call it before there are threads.

    By default it learns from the first large block that is freed to keep the next ones, and has up
    to eight arenas for each core, which threads fill one after the other: a few uploads leave
    hundreds of megabytes behind.
    """
    # musl, for one, has no such call, and nothing to be told.
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_ARENA_MAX, MAX_ARENAS)
