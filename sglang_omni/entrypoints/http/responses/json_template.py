"""JSON objects that differ in one string, encoded once for all of them."""

from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Any

from sglang_omni.entrypoints.http.responses.sse import encoded

# No string of a request has it: JSON allows it only where it is escaped, and names have none.
_MARK = "\0"


class JsonTemplate:
    """What `make` makes of a string, in JSON and ASCII, for a fraction of its time."""

    def __init__(self, make: Callable[[str], dict[str, Any]]) -> None:
        """`make` puts its argument into the object once, as it is."""
        head, mark, tail = encoded(make(_MARK)).rpartition(encode_basestring_ascii(_MARK).encode())
        assert mark and tail, "the object does not hold its string"
        self._head, self._tail = head, tail

    def fill(self, text: str) -> bytes:
        """The object with `text` in it."""
        return self._head + encode_basestring_ascii(text).encode("ascii") + self._tail

    def fill_plain(self, text: bytes) -> bytes:
        """The same for ASCII that needs no escapes, such as base64."""
        return b'%b"%b"%b' % (self._head, text, self._tail)
