"""Finds the folder for the output of a command's engines."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from sglang_omni.entrypoints.startup.cache_folders import PACKAGE, get_temporary_folder
from sglang_omni.entrypoints.startup.preflight_checks import require_folder, require_own_folder
from sglang_omni.protocol.errors import ConfigError

LOGGER = logging.getLogger(__name__)


def open_log_folder(configured: Path | None, name: str) -> Path | None:
    """Return the folder for the engines' output, and create it if needed.

    Without a configured folder it is `name` in the user's state folder, or else in this user's
    own folder in the system's temporary folder. Return None if neither is writable: the output is
    then shown on the terminal, and a warning says why.

    Raises:
        ConfigError: The configured folder cannot be used.
    """
    if configured is not None:
        require_folder(configured, "log_folder")
        return configured
    reasons = []
    for parent in _iter_default_folders():
        try:
            require_own_folder(parent, "log_folder")
            require_folder(parent / name, "log_folder")
        except ConfigError as error:
            reasons.append(error.message)
        else:
            return parent / name
    LOGGER.warning(
        "the engines' output is shown here because no log folder is writable: %s; "
        "set --log-folder to one that is",
        "; ".join(reasons),
    )
    return None


def _iter_default_folders() -> Iterator[Path]:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    # Without a home the path is not expanded; it must not end up in the working directory.
    if os.path.isabs(state):
        yield Path(state) / PACKAGE
    yield get_temporary_folder()
