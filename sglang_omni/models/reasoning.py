"""Reasoning between `<think>` and `</think>` in front of an answer, as most models write it."""

from sglang_omni.models.chat import Reasoning

OPEN, CLOSE = THINK_TAGS = "<think>", "</think>"


class ThinkTagParser:
    """Splits a leading `<think>...</think>` of one answer from the rest while it is written.

    With thinking enabled the model writes its reasoning first, as ordinary text. The tags, and the
    white space around them and around the reasoning, are left out. An answer without the opening
    tag passes unchanged. An answer that never closes it is all reasoning. Neither text depends on
    how the answer is split into deltas.

    `_read` is the method that reads the current state: before the opening tag, in the reasoning,
    after it, in the content.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._read = self._read_start
        self._has_reasoning = False

    @property
    def has_ended(self) -> bool:
        """Return whether only content can follow, and none is held back."""
        return self._read == self._read_answer

    def push(self, delta: str) -> list[str | Reasoning]:
        """Take more of the answer and return the parts that later text cannot change."""
        self._pending += delta
        return self._read()

    def finish(self) -> list[str | Reasoning]:
        """Return the text that was held back for a tag that never completed."""
        if self._read == self._read_start:
            return [self._pending] if self._pending else []
        return self._to_parts(self._pending) if self._read == self._read_reasoning else []

    def _read_start(self) -> list[str | Reasoning]:
        start = self._pending.lstrip()
        if start.startswith(OPEN):
            self._pending, self._read = start.removeprefix(OPEN), self._read_reasoning
            return self._read()
        if not OPEN.startswith(start):
            self._read = self._read_answer
            return self._read()
        return []

    def _read_reasoning(self) -> list[str | Reasoning]:
        reasoning, closing_tag, rest = self._pending.partition(CLOSE)
        if closing_tag:
            self._pending, self._read = rest, self._skip_blanks
            return [*self._to_parts(reasoning), *self._read()]
        # The end may be the start of the closing tag, and white space there may be trailing.
        settled = len(reasoning) - _open_tail_length(reasoning)
        text, self._pending = reasoning[:settled], reasoning[settled:]
        return self._to_parts(text, is_last=False)

    def _to_parts(self, text: str, is_last: bool = True) -> list[str | Reasoning]:
        """Return reasoning without the white space before and after all of it."""
        text = text.rstrip() if is_last else text
        text = text if self._has_reasoning else text.lstrip()
        self._has_reasoning = self._has_reasoning or bool(text)
        return [Reasoning(text)] if text else []

    def _skip_blanks(self) -> list[str | Reasoning]:
        self._pending = self._pending.lstrip()
        if not self._pending:
            return []
        self._read = self._read_answer
        return self._read()

    def _read_answer(self) -> list[str | Reasoning]:
        text, self._pending = self._pending, ""
        return [text] if text else []


def _open_tail_length(text: str) -> int:
    """Return the length of the suffix that may end the reasoning.

    It is white space, then a prefix of the closing tag.
    """
    for length in range(min(len(text), len(CLOSE) - 1), 0, -1):
        if CLOSE.startswith(text[-length:]):
            return len(text) - len(text[:-length].rstrip())
    return len(text) - len(text.rstrip())
