"""The timer slack of threads (`PR_SET_TIMERSLACK`). Linux only, like the engines."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_TIMERSLACK = 29
_PR_GET_TIMERSLACK = 30

EXACT_NS = 50_000
"""The kernel's default."""
RELAXED_NS = 1_000_000_000


@contextmanager
def relaxed_timers() -> Iterator[None]:
    """Let threads and processes that are started in the body wake late from timed waits.

    Events still wake them at once, so this suits threads that wait for events and poll in between.
    Each of gloo's threads polls a hundred times a second, and SGLang has one for every process
    group of a rank. A process started in the body inherits the slack. It calls
    `restore_exact_timers` before it starts threads that need exact timers.
    """
    previous_ns = _prctl(_PR_GET_TIMERSLACK)
    _prctl(_PR_SET_TIMERSLACK, RELAXED_NS)
    try:
        yield
    finally:
        _prctl(_PR_SET_TIMERSLACK, previous_ns)


def restore_exact_timers() -> None:
    """Give this thread, and those it starts from now on, the kernel's default timer slack."""
    _prctl(_PR_SET_TIMERSLACK, EXACT_NS)


def _prctl(option: int, value: int = 0) -> int:
    """Call `prctl`. If the kernel does not support the option, nothing changes."""
    return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0))
