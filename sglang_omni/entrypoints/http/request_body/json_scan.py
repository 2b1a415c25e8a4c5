"""A look at the structure of JSON before it is parsed: what would be costly is refused unparsed.

A parser holds the interpreter lock from the first byte to the last, and so all of the server. NumPy
does not: it counts values and finds long strings at a gigabyte a second, a block at a time. What is
not JSON passes or is refused here; the parser tells which after it.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sglang_omni.protocol.errors import InvalidJSON, InvalidRequest

# Several times what 4,096 messages with parts, and 128 functions, have.
MAX_VALUES = 50_000
MAX_DEPTH = 128
# A string of so many bytes is long: it is taken out before the rest is parsed.
LONG_STRING_BYTES = 4 << 10

_BLOCK_BYTES = 256 << 10
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_IS_STRUCTURAL = np.zeros(256, np.bool_)
_IS_STRUCTURAL[list(b",[{]}")] = True
_STARTS_VALUE = np.zeros(256, np.int64)
_STARTS_VALUE[list(b",[{")] = 1
_DEPTH = np.zeros(256, np.int64)
_DEPTH[list(b"[{")] = 1
_DEPTH[list(b"]}")] = -1

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class LongString:
    """Where a long string lies: between `start`, behind its opening quote, and `end`, its closing
    quote. `has_escapes` tells whether there is a backslash in it."""

    start: int
    end: int
    has_escapes: bool


@dataclass
class JsonScan:
    """What is known of a JSON text, block by block. `long_strings` are those that have ended."""

    long_strings: list[LongString] = field(default_factory=list)
    values: int = 0
    depth: int = 0
    _in_string: bool = False
    # Where the string began that has not ended, and whether it has a backslash so far.
    _start: int = 0
    _has_escapes: bool = False
    # Whether the next byte is escaped by the last one.
    _is_escaped: bool = False

    def add(self, block: NDArray[np.uint8], offset: int) -> None:
        """Look at the next bytes, which begin at `offset`.

        Raises `InvalidRequest` beyond `MAX_VALUES`, `InvalidJSON` beyond `MAX_DEPTH`.
        """
        slashes: Positions = np.flatnonzero(block == _BACKSLASH)
        quotes = self._unescaped_quotes(block, slashes)
        self._count(block, quotes)
        self._note_strings(quotes, slashes, offset)

    def _unescaped_quotes(self, block: NDArray[np.uint8], slashes: Positions) -> Positions:
        quotes: Positions = np.flatnonzero(block == _QUOTE)
        was_escaped, self._is_escaped = self._is_escaped, False
        if was_escaped:
            slashes, quotes = slashes[slashes > 0], quotes[quotes > 0]
        if not slashes.size:
            return quotes
        # Of backslashes in a row each second one is escaped by the one before it.
        is_first = np.diff(slashes, prepend=-2) != 1
        first = slashes[is_first]
        last = slashes[np.append(is_first[1:], True)]
        escaped = last[(last - first) % 2 == 0] + 1
        self._is_escaped = bool(escaped.size) and int(escaped[-1]) == len(block)
        return np.setdiff1d(quotes, escaped, assume_unique=True)

    def _count(self, block: NDArray[np.uint8], quotes: Positions) -> None:
        """Count values, and how deep they lie, outside of strings."""
        if self._in_string and not quotes.size:
            return
        places: Positions = np.flatnonzero(_IS_STRUCTURAL[block])
        is_outside = (np.searchsorted(quotes, places) + self._in_string) % 2 == 0
        marks = block[places[is_outside]]
        if not marks.size:
            return
        self.values += int(_STARTS_VALUE[marks].sum())
        depths = np.cumsum(_DEPTH[marks])
        deepest, self.depth = self.depth + int(depths.max()), self.depth + int(depths[-1])
        if deepest > MAX_DEPTH:
            raise InvalidJSON(f"the JSON is nested more than {MAX_DEPTH} deep")
        if self.values > MAX_VALUES:
            raise InvalidRequest(f"the JSON has more than {MAX_VALUES} values")

    def _note_strings(self, quotes: Positions, slashes: Positions, offset: int) -> None:
        """Keep the long ones of the strings that end in this block."""
        if self._in_string:
            inside = slashes if not quotes.size else slashes[slashes < quotes[0]]
            self._has_escapes |= bool(inside.size)
            if not quotes.size:
                return
            self._keep(self._start, offset + int(quotes[0]), self._has_escapes)
            quotes = quotes[1:]
        starts, ends = quotes[::2], quotes[1::2]
        self._in_string = starts.size > ends.size
        if self._in_string:
            self._start = offset + int(starts[-1]) + 1
            self._has_escapes = bool(slashes.size) and int(slashes[-1]) > int(starts[-1])
            starts = starts[:-1]
        is_long = ends - starts > LONG_STRING_BYTES
        for start, end in zip(starts[is_long].tolist(), ends[is_long].tolist(), strict=True):
            before = np.searchsorted(slashes, (start, end))
            self._keep(offset + start + 1, offset + end, bool(before[1] > before[0]))

    def _keep(self, start: int, end: int, has_escapes: bool) -> None:
        if end - start >= LONG_STRING_BYTES:
            self.long_strings.append(LongString(start, end, has_escapes))


def scan_json(text: bytes | bytearray | memoryview) -> tuple[LongString, ...]:
    """Return where the long strings of a JSON text lie, in order.

    Raises `InvalidRequest` beyond `MAX_VALUES`, `InvalidJSON` beyond `MAX_DEPTH`.
    """
    scan, data = JsonScan(), np.frombuffer(text, np.uint8)
    for offset in range(0, len(data), _BLOCK_BYTES):
        scan.add(data[offset : offset + _BLOCK_BYTES], offset)
    return tuple(scan.long_strings)


def check_small_json(text: bytes) -> None:
    """Refuse a small JSON text that is nested too deeply for whoever parses it.

    Raises `InvalidRequest` beyond `MAX_VALUES`, `InvalidJSON` beyond `MAX_DEPTH`.
    """
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH:
        scan_json(text)
