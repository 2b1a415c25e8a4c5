"""Large JSON, parsed in steps of milliseconds, to be run in a thread.

Its long strings (files in base64, mostly) are taken out and decoded slice by slice; what is left
is small, and parsed as usual.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sglang_omni.entrypoints.http.request_body.json_scan import (
    LONG_STRING_BYTES,
    LongString,
    scan_json,
)
from sglang_omni.entrypoints.unicode import REASON, check_unicode, has_surrogate_escape
from sglang_omni.protocol.errors import InvalidJSON, InvalidRequest
from sglang_omni.protocol.unicode import is_unicode

# What is left without the long strings: parsed in one call, in a few tens of milliseconds.
MAX_REST_BYTES = 4 << 20
# Of a long string with escapes, decoded in one call.
_SLICE_BYTES = 256 << 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ESCAPE_BYTES = 6
# As much of a string as has whole escapes, and whole pairs of them.
_WHOLE_ESCAPES = re.compile(
    rb"(?:[^\\]++"
    rb"|\\[^u]"
    rb"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+",
    re.DOTALL,
)

Path = tuple[str | int, ...]
ParseConstant = Callable[[str], Any] | None
Buffer = bytes | bytearray | memoryview


def parse_json(text: Buffer, what: str = "the body", parse_constant: ParseConstant = None) -> Any:
    """Return the value of a JSON text in UTF-8; `what` it is, for errors.

    Raises `InvalidJSON`; `InvalidRequest` for one that has too many values or too much text beside
    its long strings, and, naming the field, for a string that is no Unicode.
    """
    long_strings = scan_json(text)
    with memoryview(text) as view:
        # A client cannot write what it does not know.
        mark = f"\0{secrets.token_hex(16)}:"
        left = len(text) - sum(one.end - one.start for one in long_strings)
        if left > MAX_REST_BYTES:
            limits = f"{MAX_REST_BYTES} bytes beside its strings of {LONG_STRING_BYTES} and more"
            raise InvalidRequest(f"{what} has more than {limits}")
        rest = b"".join(_without(view, long_strings, json.dumps(mark)[1:-1].encode()))
        try:
            value = json.loads(rest.removeprefix(_BYTE_ORDER_MARK), parse_constant=parse_constant)
            strings = [_decode(view, one) for one in long_strings]
        except ValueError as error:
            raise InvalidJSON(f"{what} is not valid JSON: {_reason(error)}") from None
    if has_surrogate_escape(rest):
        check_unicode(value)
    return _Filler(mark, strings).fill(value)


def _reason(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


def _without(view: memoryview, strings: Sequence[LongString], mark: bytes) -> Iterator[Buffer]:
    """The text, each long string replaced by `mark` and its number."""
    place = 0
    for number, one in enumerate(strings):
        yield view[place : one.start]
        yield mark + str(number).encode()
        place = one.end
    yield view[place:]


def _decode(view: memoryview, string: LongString) -> str | None:
    """The text between the quotes of a string; None for one that is no Unicode.

    Raises `ValueError` for one that is not JSON's.
    """
    if string.has_escapes:
        parts = []
        for part in _decode_slices(view[string.start : string.end]):
            if not is_unicode(part):
                return None
            parts.append(part)
        return "".join(parts)
    raw = view[string.start : string.end]
    if np.frombuffer(raw, np.uint8).min() < ord(" "):
        raise ValueError("Invalid control character")
    return str(raw, "utf-8")


def _decode_slices(raw: memoryview) -> Iterator[str]:
    start = 0
    while start < len(raw):
        part = bytes(raw[start : start + _SLICE_BYTES])
        if start + len(part) < len(raw):
            part = part[: _cut(part)]
        yield json.loads(b'"' + part + b'"')
        start += len(part)


def _cut(part: bytes) -> int:
    """Where a slice of a string may end: not within a character, an escape, or a pair of them."""
    whole = _WHOLE_ESCAPES.match(part)
    assert whole is not None  # The pattern matches nothing, too.
    end = whole.end()
    if end == len(part):
        # Before the last character of UTF-8, which may be incomplete.
        while end and part[end - 1] & 0xC0 == 0x80:
            end -= 1
        if end and part[end - 1] >= 0xC0:
            end -= 1
    # Half of a pair, or what is no escape: the parser tells.
    return end or _ESCAPE_BYTES


@dataclass(frozen=True)
class _Filler:
    """Puts long strings into the places that are marked with `mark` and their numbers."""

    mark: str
    strings: Sequence[str | None]

    def fill(self, value: Any, path: Path = ()) -> Any:
        """Return the value, which is at `path`, with its long strings. Raises `InvalidRequest`."""
        if isinstance(value, str) and value.startswith(self.mark):
            return _require_unicode(self.strings[int(value[len(self.mark) :])], path)
        if isinstance(value, list):
            return [self.fill(one, (*path, index)) for index, one in enumerate(value)]
        if isinstance(value, dict):
            if any(name.startswith(self.mark) for name in value):
                raise _refused(path, f"a name in it has {LONG_STRING_BYTES} bytes or more")
            return {name: self.fill(one, (*path, name)) for name, one in value.items()}
        return value


def _require_unicode(text: str | None, path: Path) -> str:
    if text is None:
        raise _refused(path, REASON)
    return text


def _refused(path: Path, reason: str) -> InvalidRequest:
    field = ".".join(map(str, path))
    return InvalidRequest(f"{field or 'the object'}: {reason}", param=field or None)
