"""Checks for lone surrogates, which JSON can express but UTF-8 cannot encode.

They are checked once, where a body or an event is decoded, so that later code need not.
"""

import json
import re
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.unicode import is_unicode

NOT_UNICODE = "has a lone surrogate, which is not valid Unicode"
# This also matches complete pairs, which are common: many encoders escape all but ASCII.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


def check_unicode(value: Any) -> None:
    """Check every string in decoded JSON, field names included.

    Raises `InvalidRequest`, naming the field. For a field name, it names the object instead.
    """
    # A stack instead of recursion, because the value may be nested deeply.
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            if not is_unicode(item):
                raise _invalid_field(path, NOT_UNICODE)
        elif isinstance(item, dict):
            if not all(map(is_unicode, item)):
                raise _invalid_field(path, f"a field name in it {NOT_UNICODE}")
            stack += [(f"{path}.{name}", child) for name, child in item.items()]
        elif isinstance(item, list):
            stack += [(f"{path}.{index}", child) for index, child in enumerate(item)]


def has_surrogate_escape(text: bytes) -> bool:
    """Return whether JSON contains an escaped surrogate, alone or in a pair."""
    return _SURROGATE_ESCAPE.search(text) is not None


def check_json_unicode(text: bytes) -> None:
    """Check the strings of a JSON text. Text that is not JSON passes; the parser reports it.

    Raises `InvalidRequest`, naming the field.
    """
    if not has_surrogate_escape(text):
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    check_unicode(value)


def check_small_body(scope: Scope, body: bytes) -> None:
    """Check a small body if it is declared as JSON.

    Raises `InvalidRequest` for a string that is not valid Unicode (naming the field), or for JSON
    that is nested too deeply.
    """
    if "json" in Headers(scope=scope).get("content-type", ""):
        check_small_json(body)
        check_json_unicode(body)


def _invalid_field(path: str, reason: str) -> InvalidRequest:
    field = path.removeprefix(".")
    message = f"{field}: {reason}" if field else f"the object: {reason}"
    return InvalidRequest(message, param=field or None)
