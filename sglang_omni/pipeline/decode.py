"""Stage 6: token ids in, text deltas out, one token at a time."""

import codecs
from collections.abc import Iterable, Sequence

from sglang_omni.models.chat import TokenBytes
from sglang_omni.protocol.errors import InvalidRequest


class TextDecoder:
    """Decodes the tokens of one answer. Constant work per token, whatever the length.

    Deltas join to the full decode of the same ids, up to a stop string. A character whose
    bytes are not all there is held back, and dropped if the answer ends inside it; bytes that
    can never become a character read as U+FFFD, as in a full decode. Text that may begin a
    stop string is held back until that is decided.
    """

    def __init__(self, tokenizer: TokenBytes, stop: Sequence[str] = ()) -> None:
        """`stop`: strings that end the answer. Raises `InvalidRequest` if one is empty."""
        if "" in stop:
            raise InvalidRequest("a stop string must not be empty", param="stop")
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop = tuple(stop)
        self._held = ""
        self.stopped = False

    def push(self, token_ids: Iterable[int]) -> str:
        """The text that `token_ids` settle, often empty. Nothing after a stop string."""
        if self.stopped:
            return ""
        data = b"".join(map(self._tokenizer.token_bytes, token_ids))
        if not self._stop:
            return self._utf8.decode(data)
        text = self._held + self._utf8.decode(data)
        end = stop_position(text, self._stop)
        if end is not None:
            self.stopped, self._held = True, ""
            return text[:end]
        keep = len(text) - held_back(text, self._stop)
        self._held = text[keep:]
        return text[:keep]

    def finish(self) -> str:
        """What was held back for a stop string that did not come."""
        text, self._held = self._held, ""
        return text


def stop_position(text: str, stop: Sequence[str]) -> int | None:
    """Where the first completed stop string begins, or None.

    The one that ends first wins (the longer of two that end together), so the answer does not
    depend on how the text was cut into deltas.
    """
    found = [(text.find(s) + len(s), text.find(s)) for s in stop if s in text]
    return min(found)[1] if found else None


def held_back(text: str, stop: Sequence[str]) -> int:
    """Length of the longest end of `text` that begins a stop string."""
    longest = min(len(text), max(map(len, stop), default=1) - 1)
    ends = (n for n in range(longest, 0, -1) if any(s.startswith(text[-n:]) for s in stop))
    return next(ends, 0)
