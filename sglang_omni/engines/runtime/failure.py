"""How an exception of a worker is told to the API process."""

import logging

from sglang_omni.protocol.errors import EngineFailed, OmniError, safe_traceback

LOGGER = logging.getLogger(__name__)


def describe(error: Exception) -> str:
    """Return an error as one message; our own errors already speak for themselves."""
    return error.message if isinstance(error, OmniError) else f"{type(error).__name__}: {error}"


def as_omni_error(error: Exception) -> OmniError:
    """Return what crosses the socket: our own errors as they are, any other as its message.

    Foreign exceptions may not unpickle on the other side, and their traceback would not either.
    """
    if isinstance(error, OmniError):
        return error
    LOGGER.error("a request failed: %s", safe_traceback(error))
    return EngineFailed(describe(error))
