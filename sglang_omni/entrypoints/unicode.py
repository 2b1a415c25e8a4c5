"""Text that is no Unicode: JSON can spell one half of a surrogate pair, which cannot be encoded.

Checked once, where a body or an event is decoded, so that no later step meets it.
"""

import json
import re
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.unicode import is_unicode

NOT_UNICODE = "has half of a surrogate pair, which is no character"
# Whole pairs are common: many encoders escape every character beyond ASCII.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


def check_unicode(value: Any) -> None:
    """Check every text in decoded JSON, names of fields included.

    Raises `InvalidRequest`, naming the field; for a name of a field the object that has it.
    """
    # A list in place of recursion: the value may be nested as deeply as the decoder allows.
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, str):
            if not is_unicode(one):
                raise _refused(path, NOT_UNICODE)
        elif isinstance(one, dict):
            if not all(map(is_unicode, one)):
                raise _refused(path, f"a name in it {NOT_UNICODE}")
            waiting += [(f"{path}.{name}", part) for name, part in one.items()]
        elif isinstance(one, list):
            waiting += [(f"{path}.{index}", part) for index, part in enumerate(one)]


def has_surrogate_escape(text: bytes) -> bool:
    """Return whether JSON spells any half of a pair, perhaps with its other half."""
    return _SURROGATE_ESCAPE.search(text) is not None


def check_json(text: bytes) -> None:
    """Check JSON before it is validated. What is not JSON is left to whoever parses it.

    Raises `InvalidRequest`, naming the field.
    """
    if not has_surrogate_escape(text):
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    check_unicode(value)


def check_json_body(scope: Scope, body: bytes) -> None:
    """Check the small body of a request, if it is JSON. Raises `InvalidRequest`, naming the field
    for a text that is no Unicode; also where it is nested too deeply."""
    if "json" in Headers(scope=scope).get("content-type", ""):
        check_small_json(body)
        check_json(body)


def _refused(path: str, reason: str) -> InvalidRequest:
    field = path.removeprefix(".")
    message = f"{field}: {reason}" if field else f"the object: {reason}"
    return InvalidRequest(message, param=field or None)
