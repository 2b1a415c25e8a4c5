"""Errors of decoders as errors for the client."""

from collections.abc import Iterator
from contextlib import contextmanager

import av

from sglang_omni.protocol.errors import InvalidRequest, OmniError

_REASON_CHARACTERS = 200


@contextmanager
def as_client_error(name: str) -> Iterator[None]:
    """Turn errors of the body, which decodes a medium called `name`, into `InvalidRequest`.

    Decoders raise many kinds of exceptions for broken files.
    """
    try:
        yield
    except OmniError:
        raise
    except MemoryError as error:
        raise build_memory_error(name) from error
    except Exception as error:
        raise InvalidRequest(f"the {name} cannot be decoded: {_format_reason(error)}") from error


def build_memory_error(name: str) -> InvalidRequest:
    """Return the error for a medium that does not fit into the memory of a decoder."""
    return InvalidRequest(f"the {name} needs more memory than a decoder may have")


def _format_reason(error: Exception) -> str:
    """Return a decoder's error in one line. FFmpeg's `str` would add a number and a file name."""
    text = error.strerror if isinstance(error, av.FFmpegError) else str(error)
    first_line = next(iter((text or "").splitlines()), "")
    return first_line[:_REASON_CHARACTERS] or type(error).__name__
