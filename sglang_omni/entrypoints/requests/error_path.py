"""The path of a field that an error names, within a larger body."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sglang_omni.protocol.errors import InvalidRequest


@contextmanager
def with_error_path(convert: Callable[[str], str]) -> Iterator[None]:
    """Convert the path of the field that an error names, in its message too."""
    try:
        yield
    except InvalidRequest as error:
        if error.param is not None:
            path = convert(error.param)
            if error.message.startswith(f"{error.param}:"):
                error.message = path + error.message.removeprefix(error.param)
            error.param = path
        raise
