"""A parser for large JSON that releases the interpreter lock every few milliseconds.

It runs in a thread. Long strings (mostly base64 files) are cut out and decoded in slices; the small
remainder is parsed as usual.
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
from sglang_omni.entrypoints.http.request_body.json_unicode import has_surrogate_escape
from sglang_omni.protocol.errors import InvalidJSON, InvalidRequest
from sglang_omni.protocol.unicode import NOT_UNICODE, check_unicode, is_unicode

# Size limit of the JSON without its long strings. One parser call takes tens of milliseconds.
MAX_REMAINDER_BYTES = 4 << 20
# How much of a long string with escapes is decoded in one call.
_SLICE_BYTES = 256 << 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ESCAPE_BYTES = 6
# Matches the longest prefix with complete escapes and complete surrogate pairs.
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


def parse_json(
    text: Buffer, description: str = "the body", parse_constant: ParseConstant = None
) -> Any:
    """Return the value of a JSON text in UTF-8.

    Args:
        text: The JSON text.
        description: What the text is, for error messages.
        parse_constant: Passed to `json.loads`.

    Raises:
        InvalidJSON: The text is not JSON, or is nested too deeply.
        InvalidRequest: The text has too many values, too many bytes beside its long strings, or a
            string that is not valid Unicode. In the last case the error names the field.
    """
    long_strings = scan_json(text)
    with memoryview(text) as view:
        # A random marker, so that a client cannot send it.
        marker = f"\0{secrets.token_hex(16)}:"
        remainder_bytes = len(text) - sum(string.end - string.start for string in long_strings)
        if remainder_bytes > MAX_REMAINDER_BYTES:
            raise InvalidRequest(
                f"{description} has more than {MAX_REMAINDER_BYTES} bytes, not counting strings of "
                f"{LONG_STRING_BYTES} bytes or more"
            )
        json_marker = json.dumps(marker)[1:-1].encode()
        remainder = b"".join(_replace_long_strings(view, long_strings, json_marker))
        try:
            value = json.loads(
                remainder.removeprefix(_BYTE_ORDER_MARK), parse_constant=parse_constant
            )
            strings = [_decode_string(view, string) for string in long_strings]
        except ValueError as error:
            raise InvalidJSON(
                f"{description} is not valid JSON: {_describe_error(error)}"
            ) from None
    if has_surrogate_escape(remainder):
        check_unicode(value)
    return _StringRestorer(marker, strings).restore(value)


def _describe_error(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


def _replace_long_strings(
    view: memoryview, strings: Sequence[LongString], marker: bytes
) -> Iterator[Buffer]:
    """Yield the text with each long string replaced by `marker` and its number."""
    position = 0
    for number, string in enumerate(strings):
        yield view[position : string.start]
        yield marker + str(number).encode()
        position = string.end
    yield view[position:]


def _decode_string(view: memoryview, string: LongString) -> str | None:
    """Return the text between the quotes of a string, or None if it is not valid Unicode.

    Raises `ValueError` if it is not a JSON string.
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
            part = part[: _find_slice_end(part)]
        yield json.loads(b'"' + part + b'"')
        start += len(part)


def _find_slice_end(part: bytes) -> int:
    """Return where a slice may end without splitting a character, an escape or a surrogate pair."""
    match = _WHOLE_ESCAPES.match(part)
    assert match is not None  # The pattern also matches the empty string.
    end = match.end()
    if end == len(part):
        # End before the last UTF-8 character: it may be incomplete.
        while end and part[end - 1] & 0xC0 == 0x80:
            end -= 1
        if end and part[end - 1] >= 0xC0:
            end -= 1
    # A lone surrogate or an invalid escape: the parser reports it.
    return end or _ESCAPE_BYTES


@dataclass(frozen=True)
class _StringRestorer:
    """Replacer of markers (`marker` and a number) with the long strings that they stand for."""

    marker: str
    strings: Sequence[str | None]

    def restore(self, value: Any, path: Path = ()) -> Any:
        """Return the value at `path` with its long strings restored. Raises `InvalidRequest`."""
        if isinstance(value, str) and value.startswith(self.marker):
            return _require_unicode(self.strings[int(value[len(self.marker) :])], path)
        if isinstance(value, list):
            return [self.restore(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            if any(name.startswith(self.marker) for name in value):
                reason = f"a field name in it has {LONG_STRING_BYTES} bytes or more"
                raise _invalid_field(path, reason)
            return {name: self.restore(item, (*path, name)) for name, item in value.items()}
        return value


def _require_unicode(text: str | None, path: Path) -> str:
    if text is None:
        raise _invalid_field(path, NOT_UNICODE)
    return text


def _invalid_field(path: Path, reason: str) -> InvalidRequest:
    field = ".".join(map(str, path))
    return InvalidRequest(f"{field or 'the object'}: {reason}", param=field or None)
