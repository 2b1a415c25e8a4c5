"""Where a command keeps what its engines print."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from sglang_omni.entrypoints.cli.cache_folders import PACKAGE, temporary_place
from sglang_omni.entrypoints.cli.preflight_checks import require_folder, require_own_folder
from sglang_omni.protocol.errors import ConfigError

LOGGER = logging.getLogger(__name__)


def open_log_folder(given: Path | None, name: str) -> Path | None:
    """Return the folder for engines' output, made if need be.

    It is the given one, or else the folder `name` of the first place that can be written: the
    user's state folder, then one of this user's own in the system's temporary folder. Return None
    where neither can be; the output is then shown, and a warning says why.

    Raises `ConfigError` for a given folder that cannot be used.
    """
    if given is not None:
        require_folder(given, "log_folder")
        return given
    reasons = []
    for place in _places():
        try:
            require_own_folder(place, "log_folder")
            require_folder(place / name, "log_folder")
        except ConfigError as error:
            reasons.append(error.message)
        else:
            return place / name
    LOGGER.warning("engines' output is shown here, as no folder takes it: %s", "; ".join(reasons))
    return None


def _places() -> Iterator[Path]:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    # Unset, or not expanded where the user has no home: nothing below the working directory.
    if os.path.isabs(state):
        yield Path(state) / PACKAGE
    yield temporary_place()
