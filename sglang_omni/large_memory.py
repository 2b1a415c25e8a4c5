"""Memory of large bodies and files, which goes back to the system when it is freed."""

import ctypes

LARGE_BYTES = 4 << 20
_M_MMAP_THRESHOLD = -3


def map_large_memory() -> None:
    """Have the C library map every block of `LARGE_BYTES` by itself, for good.

    By default it learns from the first large block that is freed to keep the next ones, and a few
    uploads leave hundreds of megabytes behind.
    """
    # musl, for one, has no such call, and nothing to be told.
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
