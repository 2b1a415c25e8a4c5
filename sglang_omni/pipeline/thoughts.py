"""Keep an answer's reasoning from being spoken."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

OPEN, CLOSE = "<think>", "</think>"


async def without_thoughts(text: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    """The answer's deltas less a leading `<think>...</think>` and the white space around it.

    With thinking on the model writes its reasoning first, as ordinary text. An answer without
    the mark passes unchanged; one that never closes it has nothing to say. How the answer is
    cut into deltas makes no difference. Closing this generator closes `text`.
    """
    answer = _Unthought()
    async with aclosing(text):
        async for delta in text:
            if said := answer.push(delta):
                yield said
    if rest := answer.finish():
        yield rest


class _Unthought:
    """Where one answer is: before a mark, inside a thought, after it, or in what is said."""

    def __init__(self) -> None:
        self._held = ""
        self._read = self._begin

    def push(self, delta: str) -> str:
        """Take more of the answer; returns what of it is certain to be said."""
        self._held += delta
        return self._read()

    def finish(self) -> str:
        """What was held back for a mark that did not come."""
        return self._held if self._read == self._begin else ""

    def _begin(self) -> str:
        start = self._held.lstrip()
        if start.startswith(OPEN):
            self._held, self._read = start.removeprefix(OPEN), self._think
            return self._read()
        if not OPEN.startswith(start):
            self._read = self._say
            return self._read()
        return ""

    def _think(self) -> str:
        _, closed, rest = self._held.partition(CLOSE)
        if not closed:
            # Only its end can begin the mark; a long thought is not searched again and again.
            self._held = self._held[1 - len(CLOSE) :]
            return ""
        self._held, self._read = rest, self._skip_blanks
        return self._read()

    def _skip_blanks(self) -> str:
        self._held = self._held.lstrip()
        if not self._held:
            return ""
        self._read = self._say
        return self._read()

    def _say(self) -> str:
        said, self._held = self._held, ""
        return said
