"""Fast encoding of JSON objects that differ in one string only."""

from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Any

from sglang_omni.entrypoints.http.responses.sse import encode_json

# No template has this character in another string.
_PLACEHOLDER = "\0"


class JsonTemplate:
    """The ASCII JSON of the objects that `make` returns, encoded once but for one string."""

    def __init__(self, make: Callable[[str], dict[str, Any]]) -> None:
        """Encode the object of `make`, which must contain its argument once, unchanged."""
        placeholder = encode_basestring_ascii(_PLACEHOLDER).encode()
        head, _, tail = encode_json(make(_PLACEHOLDER)).partition(placeholder)
        assert tail, "the object does not contain the placeholder"
        self._head, self._tail = head, tail

    def fill(self, text: str) -> bytes:
        """Return the JSON of the object with `text` in it."""
        return self._head + encode_basestring_ascii(text).encode("ascii") + self._tail

    def fill_plain(self, text: bytes) -> bytes:
        """Return the same for ASCII text that needs no escapes, such as base64."""
        return b'%b"%b"%b' % (self._head, text, self._tail)
