"""An end for what takes too long."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from sglang_omni.errors import DeadlineExceeded

T = TypeVar("T")


async def within(items: AsyncGenerator[T, None], seconds: float) -> AsyncGenerator[T, None]:
    """Pass on what comes within `seconds` of the first request for an item; then raise
    `DeadlineExceeded` and close `items`.

    Time that the reader takes counts, but does not interrupt it.
    """
    ends_at = asyncio.get_running_loop().time() + seconds
    async with aclosing(items):
        while True:
            try:
                # Around each item alone: cancelling must never hit the reader of this generator.
                async with asyncio.timeout_at(ends_at):
                    item = await anext(items)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise DeadlineExceeded(f"not done within {seconds:g} s") from None
            yield item
