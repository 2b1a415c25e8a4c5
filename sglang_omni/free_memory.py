"""Memory that was freed, and that the C library keeps for itself until it is told to return it."""

import ctypes

# musl, for one, has no such call, and keeps nothing of any size.
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)


def return_free_memory() -> None:
    """Give free memory back to the system. Takes milliseconds, not the interpreter's lock."""
    if _TRIM is not None:
        _TRIM(ctypes.c_size_t(0))
