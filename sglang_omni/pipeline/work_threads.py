"""Threads for work that would hold up the event loop.

They are not the loop's default executor, which decoding and file access may fill. Long work has a
thread of its own, so that what takes milliseconds never waits behind what takes a second. What runs
here must release the interpreter lock every few milliseconds: Python code does by itself, one call
into C may not.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Work on so many bytes or characters takes the event loop less time than a change of threads.
INLINE_SIZE = 4 << 10
# From here on work is long.
LONG_SIZE = 1 << 20

_SHORT = ThreadPoolExecutor(1, "short-work")
_LONG = ThreadPoolExecutor(1, "long-work")


async def run_off_loop(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return `function(*args, **kwargs)`, called in a thread unless `size`, the bytes or characters
    that it works on, is small. Raises what it raises.

    Work is done in the order of asking, long work in a line of its own. Whoever is cancelled while
    the work waits takes it out of the line; once begun, it ends.
    """
    if size <= INLINE_SIZE:
        return function(*args, **kwargs)
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    pool = _LONG if size >= LONG_SIZE else _SHORT
    return await asyncio.get_running_loop().run_in_executor(pool, call)
