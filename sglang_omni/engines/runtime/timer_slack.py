"""How exact the kernel's timers are for a thread. Linux only, as the engines are."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_TIMERSLACK = 29
_PR_GET_TIMERSLACK = 30

EXACT_NS = 50_000
"""The kernel's own default."""
RELAXED_NS = 1_000_000_000


@contextmanager
def relaxed_timers() -> Iterator[None]:
    """Have threads and processes that are started in the body wake late from waits that time out.

    They are woken by events as ever, so this suits what waits for events and only looks around
    between them. Each of gloo's threads does so a hundred times a second, and SGLang has one for
    every process group of a rank. A process started here has this from its first thread on; it
    calls `exact_timers` before it starts threads that need theirs exact.
    """
    before = _prctl(_PR_GET_TIMERSLACK)
    _prctl(_PR_SET_TIMERSLACK, RELAXED_NS)
    try:
        yield
    finally:
        _prctl(_PR_SET_TIMERSLACK, before)


def exact_timers() -> None:
    """Have this thread, and those it starts from now on, wake from timed waits on time."""
    _prctl(_PR_SET_TIMERSLACK, EXACT_NS)


def _prctl(option: int, value: int = 0) -> int:
    """Make the call; where the kernel lacks it, timers stay as exact as they were."""
    return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0))
