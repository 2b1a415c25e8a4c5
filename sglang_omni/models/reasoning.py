"""Reasoning between `<think>` and `</think>` in front of an answer, as most models write it."""

from sglang_omni.models.chat import Thought

OPEN, CLOSE = "<think>", "</think>"


class ThinkTagParser:
    """Separates a leading `<think>...</think>` of one answer from the rest while it is written.

    With thinking on the model writes its reasoning first, as ordinary text. The marks, and the
    white space around the thought and around the marks, are left out. An answer without the mark
    passes unchanged; one that never closes it has no text. How the answer is cut into deltas makes
    no difference to either text.
    """

    def __init__(self) -> None:
        self._held = ""
        self._read = self._begin
        self._thinks = False

    def push(self, delta: str) -> list[str | Thought]:
        """Take more of the answer; returns what of it is certain."""
        self._held += delta
        return self._read()

    def finish(self) -> list[str | Thought]:
        """What was held back for a mark that did not come."""
        if self._read == self._begin:
            return [self._held] if self._held else []
        return self._thought(self._held) if self._read == self._think else []

    def _begin(self) -> list[str | Thought]:
        start = self._held.lstrip()
        if start.startswith(OPEN):
            self._held, self._read = start.removeprefix(OPEN), self._think
            return self._read()
        if not OPEN.startswith(start):
            self._read = self._say
            return self._read()
        return []

    def _think(self) -> list[str | Thought]:
        thought, closed, rest = self._held.partition(CLOSE)
        if closed:
            self._held, self._read = rest, self._skip_blanks
            return [*self._thought(thought), *self._read()]
        # Its end may begin the mark, and blanks there may be the thought's last.
        certain = len(thought) - _begun(thought)
        said, self._held = thought[:certain], thought[certain:]
        return self._thought(said, ends=False)

    def _thought(self, text: str, ends: bool = True) -> list[str | Thought]:
        """Reasoning without the blanks around all of it."""
        text = text.rstrip() if ends else text
        text = text if self._thinks else text.lstrip()
        self._thinks = self._thinks or bool(text)
        return [Thought(text)] if text else []

    def _skip_blanks(self) -> list[str | Thought]:
        self._held = self._held.lstrip()
        if not self._held:
            return []
        self._read = self._say
        return self._read()

    def _say(self) -> list[str | Thought]:
        said, self._held = self._held, ""
        return [said] if said else []


def _begun(text: str) -> int:
    """Length of the end of `text` that may end a thought: blanks, then a part of the mark."""
    for size in range(min(len(text), len(CLOSE) - 1), 0, -1):
        if CLOSE.startswith(text[-size:]):
            return len(text) - len(text[:-size].rstrip())
    return len(text) - len(text.rstrip())
