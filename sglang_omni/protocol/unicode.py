"""Checks for lone surrogates, which JSON can express but UTF-8 cannot encode."""

from typing import Any

from sglang_omni.protocol.errors import InvalidRequest

NOT_UNICODE = "has a lone surrogate, which is not valid Unicode"


def is_unicode(text: str) -> bool:
    """Return whether `text` can be encoded, that is, has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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


def _invalid_field(path: str, reason: str) -> InvalidRequest:
    field = path.removeprefix(".")
    message = f"{field}: {reason}" if field else f"the object: {reason}"
    return InvalidRequest(message, param=field or None)
