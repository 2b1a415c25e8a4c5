"""Stage 6: decode token ids to text deltas, one token at a time."""

import codecs
from collections.abc import Iterable, Sequence

from sglang_omni.models.chat import TokenBytes
from sglang_omni.protocol.errors import InvalidRequest


class TextDecoder:
    """Decode the tokens of one answer. The work per token does not grow with the answer.

    The deltas join to the full decode of the same ids, up to a stop string. An incomplete
    character is held back, and dropped if the answer ends inside it. Invalid bytes become U+FFFD,
    as in a full decode. Text that may be the start of a stop string is held back until later text
    decides.
    """

    def __init__(self, tokenizer: TokenBytes, stop: Sequence[str] = ()) -> None:
        """Take the strings that end the answer. Raises `InvalidRequest` if one is empty."""
        if "" in stop:
            raise InvalidRequest("a stop string must not be empty", param="stop")
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop = tuple(stop)
        self._pending = ""
        self.stopped = False

    def push(self, token_ids: Iterable[int]) -> str:
        """Return the text that `token_ids` complete, often empty.

        After a stop string it is always empty.
        """
        if self.stopped:
            return ""
        data = b"".join(map(self._tokenizer.token_bytes, token_ids))
        if not self._stop:
            return self._utf8.decode(data)
        text = self._pending + self._utf8.decode(data)
        end = find_stop(text, self._stop)
        if end is not None:
            self.stopped, self._pending = True, ""
            return text[:end]
        complete = len(text) - partial_stop_length(text, self._stop)
        self._pending = text[complete:]
        return text[:complete]

    def finish(self) -> str:
        """Return the text that was held back for a stop string that never completed."""
        text, self._pending = self._pending, ""
        return text


def find_stop(text: str, stop: Sequence[str]) -> int | None:
    """Return the position of the first completed stop string, or None.

    The stop string that ends first wins; of two that end together, the longer one. So the result
    does not depend on how the text was split into deltas.
    """
    spans = [(text.find(s) + len(s), text.find(s)) for s in stop if s in text]
    return min(spans)[1] if spans else None


def partial_stop_length(text: str, stop: Sequence[str]) -> int:
    """Return the length of the longest suffix of `text` that is a prefix of a stop string."""
    max_length = min(len(text), max(map(len, stop), default=1) - 1)
    lengths = (n for n in range(max_length, 0, -1) if any(s.startswith(text[-n:]) for s in stop))
    return next(lengths, 0)
