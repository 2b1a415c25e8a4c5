"""Checks for lone surrogates, which JSON can express but UTF-8 cannot encode.

They are checked once, where a body or an event is decoded, so that later code need not.
"""

import json
import re

from starlette.datastructures import Headers
from starlette.types import Scope

from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.protocol.unicode import check_unicode

# This also matches complete pairs, which are common: many encoders escape all but ASCII.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


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
