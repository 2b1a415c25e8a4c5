"""Threads for CPU work that would block the event loop.

They are separate from the loop's default executor, which media decoding and file access may fill.
Long work has its own thread, so that work of milliseconds never waits behind work of a second. The
work must release the interpreter lock every few milliseconds. Python code does; a single call into
C may not.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Up to this size in bytes or characters, work costs less than a switch of threads.
MAX_INLINE_SIZE = 4 << 10
# From this size on, work counts as long.
MIN_LONG_SIZE = 1 << 20

_SHORT_WORK_POOL = ThreadPoolExecutor(1, "short-work")
_LONG_WORK_POOL = ThreadPoolExecutor(1, "long-work")


async def run_off_loop(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return `function(*args, **kwargs)`, called in a thread unless `size` is small.

    Short and long work have separate queues, in order of submission. Cancellation removes queued
    work; work that has started runs to its end.

    Args:
        size: Bytes or characters to work on.
        function: The function to call. Its exceptions are raised here.
        args: Positional arguments of `function`.
        kwargs: Keyword arguments of `function`.
    """
    if size <= MAX_INLINE_SIZE:
        return function(*args, **kwargs)
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    pool = _LONG_WORK_POOL if size >= MIN_LONG_SIZE else _SHORT_WORK_POOL
    return await asyncio.get_running_loop().run_in_executor(pool, call)
