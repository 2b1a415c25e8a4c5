"""Fields of a request that have no effect: they are told in a header, or refused."""

from collections.abc import Iterable

from fastapi import Request
from starlette.types import Scope

from sglang_omni.protocol.compat.adapt import UNSUPPORTED_CODE
from sglang_omni.protocol.errors import InvalidRequest

IGNORED_FIELDS_HEADER = "X-Ignored-Fields"
MAX_HEADER_CHARACTERS = 1000
_MORE = ", ..."
_STATE_KEY = "ignored_fields"


def check_ignored_fields(names: Iterable[str], *, strict: bool) -> None:
    """Raise `InvalidRequest` if there are fields without effect and they are to be refused."""
    listed = sorted(names)
    if not strict or not listed:
        return
    shown = _join(listed)
    error = InvalidRequest(
        f"{shown}: no effect on this server, which was started with --strict-fields; "
        "leave out such fields",
        param=listed[0],
    )
    error.code = UNSUPPORTED_CODE
    raise error


def note_ignored_fields(request: Request, names: Iterable[str]) -> None:
    """Remember fields without effect for the header of the answer, which the middleware adds.

    Raises `InvalidRequest` if the server refuses them.
    """
    names = frozenset(names)
    check_ignored_fields(names, strict=request.app.state.strict_fields)
    request.scope["state"][_STATE_KEY] = get_ignored_fields(request.scope) | names


def get_ignored_fields(scope: Scope) -> frozenset[str]:
    """Return the fields of a request without effect that were found so far."""
    names: frozenset[str] = scope["state"].get(_STATE_KEY, frozenset())
    return names


def format_ignored_fields(names: Iterable[str]) -> str:
    """Return the value of the header: the names in order, cut where they are too long."""
    return _join(sorted(names))


def _join(names: list[str]) -> str:
    text = ", ".join(names)
    if len(text) <= MAX_HEADER_CHARACTERS:
        return text
    return text[: MAX_HEADER_CHARACTERS - len(_MORE)].rpartition(", ")[0] + _MORE
