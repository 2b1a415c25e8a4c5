"""A structural scan of JSON that rejects expensive texts before they are parsed.

A parser holds the interpreter lock for the whole text and so blocks the server. NumPy releases it:
it counts values and finds long strings at about 1 GB/s, block by block. The scan does not validate
JSON; the parser does that afterwards.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sglang_omni.protocol.errors import InvalidJSON, InvalidRequest

# Several times the values of a body with 4,096 messages with parts and 128 functions.
MAX_VALUES = 50_000
MAX_DEPTH = 128
# Strings of at least this many bytes are cut out before the remainder is parsed.
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
    """The position of a long string.

    `start` is the byte after the opening quote, `end` is the closing quote. `has_escapes` says
    whether the string contains a backslash.
    """

    start: int
    end: int
    has_escapes: bool


@dataclass
class JsonScan:
    """The state of a scan after some blocks. `long_strings` holds those that have ended."""

    long_strings: list[LongString] = field(default_factory=list)
    num_values: int = 0
    depth: int = 0
    _in_string: bool = False
    # Start of the open string, and whether it has a backslash so far.
    _start: int = 0
    _has_escapes: bool = False
    # Whether the last byte escapes the next one.
    _is_escaped: bool = False

    def scan_block(self, block: NDArray[np.uint8], offset: int) -> None:
        """Scan the next block, which starts at byte `offset`.

        Raises:
            InvalidRequest: The text has more than `MAX_VALUES` values.
            InvalidJSON: The text is nested deeper than `MAX_DEPTH`.
        """
        backslashes: Positions = np.flatnonzero(block == _BACKSLASH)
        quotes = self._find_unescaped_quotes(block, backslashes)
        self._count_values(block, quotes)
        self._record_strings(quotes, backslashes, offset)

    def _find_unescaped_quotes(self, block: NDArray[np.uint8], backslashes: Positions) -> Positions:
        quotes: Positions = np.flatnonzero(block == _QUOTE)
        was_escaped, self._is_escaped = self._is_escaped, False
        if was_escaped:
            backslashes, quotes = backslashes[backslashes > 0], quotes[quotes > 0]
        if not backslashes.size:
            return quotes
        # In a run of backslashes, each second one is escaped. An odd run escapes the next byte.
        is_first = np.diff(backslashes, prepend=-2) != 1
        first = backslashes[is_first]
        last = backslashes[np.append(is_first[1:], True)]
        escaped = last[(last - first) % 2 == 0] + 1
        self._is_escaped = bool(escaped.size) and int(escaped[-1]) == len(block)
        return np.setdiff1d(quotes, escaped, assume_unique=True)

    def _count_values(self, block: NDArray[np.uint8], quotes: Positions) -> None:
        """Count the values and the nesting depth outside strings."""
        if self._in_string and not quotes.size:
            return
        positions: Positions = np.flatnonzero(_IS_STRUCTURAL[block])
        is_outside = (np.searchsorted(quotes, positions) + self._in_string) % 2 == 0
        structure = block[positions[is_outside]]
        if not structure.size:
            return
        self.num_values += int(_STARTS_VALUE[structure].sum())
        depths = np.cumsum(_DEPTH[structure])
        deepest, self.depth = self.depth + int(depths.max()), self.depth + int(depths[-1])
        if deepest > MAX_DEPTH:
            raise InvalidJSON(f"the JSON is nested more than {MAX_DEPTH} deep")
        if self.num_values > MAX_VALUES:
            raise InvalidRequest(f"the JSON has more than {MAX_VALUES} values")

    def _record_strings(self, quotes: Positions, backslashes: Positions, offset: int) -> None:
        """Record the long strings that end in this block."""
        if self._in_string:
            inside = backslashes if not quotes.size else backslashes[backslashes < quotes[0]]
            self._has_escapes |= bool(inside.size)
            if not quotes.size:
                return
            self._add_if_long(self._start, offset + int(quotes[0]), self._has_escapes)
            quotes = quotes[1:]
        starts, ends = quotes[::2], quotes[1::2]
        self._in_string = starts.size > ends.size
        if self._in_string:
            self._start = offset + int(starts[-1]) + 1
            self._has_escapes = bool(backslashes.size) and int(backslashes[-1]) > int(starts[-1])
            starts = starts[:-1]
        is_long = ends - starts > LONG_STRING_BYTES
        for start, end in zip(starts[is_long].tolist(), ends[is_long].tolist(), strict=True):
            before = np.searchsorted(backslashes, (start, end))
            self._add_if_long(offset + start + 1, offset + end, bool(before[1] > before[0]))

    def _add_if_long(self, start: int, end: int, has_escapes: bool) -> None:
        if end - start >= LONG_STRING_BYTES:
            self.long_strings.append(LongString(start, end, has_escapes))


def scan_json(text: bytes | bytearray | memoryview) -> tuple[LongString, ...]:
    """Return the positions of the long strings of a JSON text, in order.

    Raises:
        InvalidRequest: The text has more than `MAX_VALUES` values.
        InvalidJSON: The text is nested deeper than `MAX_DEPTH`.
    """
    scan, data = JsonScan(), np.frombuffer(text, np.uint8)
    for offset in range(0, len(data), _BLOCK_BYTES):
        scan.scan_block(data[offset : offset + _BLOCK_BYTES], offset)
    return tuple(scan.long_strings)


def check_small_json(text: bytes) -> None:
    """Check that a small JSON text is not nested too deeply for a parser.

    Raises:
        InvalidRequest: The text has more than `MAX_VALUES` values.
        InvalidJSON: The text is nested deeper than `MAX_DEPTH`.
    """
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH:
        scan_json(text)
