"""Conversion of a worker's exceptions to the errors that the API process receives."""

import logging

from sglang_omni.protocol.errors import EngineFailed, OmniError, safe_traceback

LOGGER = logging.getLogger(__name__)


def describe(error: Exception) -> str:
    """Return the message of an error. An `OmniError` needs no type name."""
    return error.message if isinstance(error, OmniError) else f"{type(error).__name__}: {error}"


def as_omni_error(error: Exception) -> OmniError:
    """Return the error to send: an `OmniError` unchanged, any other as an `EngineFailed`.

    Foreign exceptions, and tracebacks, may not unpickle on the other side.
    """
    if isinstance(error, OmniError):
        return error
    LOGGER.error("a request failed: %s", safe_traceback(error))
    return EngineFailed(describe(error))
