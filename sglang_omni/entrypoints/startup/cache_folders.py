"""Finds a writable folder for the caches of the engines' libraries.

FlashInfer, Triton, PyTorch and the Hugging Face client keep caches in the user's home, some of them
from their import on. A container with a read-only file system, or a user id without a password
entry, has no writable home.
"""

import logging
import os
import pwd
import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from sglang_omni.entrypoints.startup.preflight_checks import require_folder, require_own_folder
from sglang_omni.protocol.errors import ConfigError, StartupError

LOGGER = logging.getLogger(__name__)

PACKAGE = "sglang-omni"
MIN_FREE_BYTES = 8 << 20
"""Space that a server on a CPU needs in the temporary folder: SGLang's counters and sockets."""


def prepare_home(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set HOME to a folder that the engines can write, if the user's own is not writable.

    The engines inherit the environment. A warning names the folder.

    Raises:
        StartupError: The temporary folder cannot be used either.
    """
    require_temporary_space()
    reason = find_home_problem(environment)
    if reason:
        folder = get_temporary_folder() / "home"
        try:
            require_own_folder(folder.parent, "HOME")
            require_folder(folder, "HOME")
        except ConfigError as error:
            raise StartupError(
                f"{reason}, and the temporary folder cannot be used: {error.message}; "
                "set HOME to a folder that this user can write"
            ) from None
        LOGGER.warning("%s; engines keep their caches in %s", reason, folder)
        environment["HOME"] = str(folder)
        # It may name the folder that is not writable.
        environment.pop("XDG_CACHE_HOME", None)
    if not _has_user_name(environment):
        # PyTorch names a cache after the user, and finds no name in the password file.
        environment["USER"] = str(os.geteuid())


def find_home_problem(environment: Mapping[str, str]) -> str:
    """Return why the user's home cannot hold caches, or "" if it can."""
    home = environment.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home) or not os.path.isdir(home):
        return f"HOME is not a folder ({home})"
    cache = environment.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    for name, folder in (("HOME", home), ("the cache folder", cache)):
        if not _is_writable(Path(folder)):
            return f"{name} {folder} is not writable"
    return ""


def _is_writable(folder: Path) -> bool:
    """Return whether files can be created in the folder, or in its first existing parent.

    Permissions are not enough: root passes every check, and a file system may be read-only.
    """
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return True
    except OSError:
        return False


def get_temporary_folder() -> Path:
    """Return this user's own folder in the system's temporary folder; it may not exist yet.

    Raises:
        StartupError: No temporary folder is writable.
    """
    try:
        return Path(tempfile.gettempdir()) / f"{PACKAGE}-{os.geteuid()}"
    except FileNotFoundError:
        raise StartupError(
            "no temporary folder is writable: /tmp is full or read-only; mount one of "
            f"{MIN_FREE_BYTES >> 20} MB or more there, or set TMPDIR to another folder"
        ) from None


def require_temporary_space() -> None:
    """Raise `StartupError` if the temporary folder has too little space for the engines."""
    folder = get_temporary_folder().parent
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < MIN_FREE_BYTES:
        raise StartupError(
            f"the temporary folder {folder} has {free_bytes / (1 << 20):.1f} MB free and the "
            f"engines need {MIN_FREE_BYTES >> 20} MB; free some space, or set TMPDIR to another "
            "folder"
        )


def _has_user_name(environment: Mapping[str, str]) -> bool:
    if any(environment.get(name) for name in ("LOGNAME", "USER", "LNAME", "USERNAME")):
        return True
    try:
        return bool(pwd.getpwuid(os.getuid()))
    except KeyError:
        return False
