"""A home for the caches of the engines' libraries, where the user has none that can be written.

FlashInfer, Triton, PyTorch and the hub's client keep caches in the user's home, some of them as
soon as they are imported. In a container with a read-only file system, or under a user id without
an entry in the password file, there is no such place.
"""

import logging
import os
import pwd
import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from sglang_omni.entrypoints.cli.preflight_checks import require_folder, require_own_folder
from sglang_omni.protocol.errors import ConfigError, StartupError

LOGGER = logging.getLogger(__name__)

PACKAGE = "sglang-omni"
MIN_FREE_BYTES = 8 << 20
"""What a server on a CPU needs of the temporary folder: counters of SGLang's, and its sockets."""


def prepare_home(environment: MutableMapping[str, str] = os.environ) -> None:
    """See that engines can keep caches; one log line says where, unless it is the user's home.

    Engines inherit the environment, which is changed for that. Raises `StartupError` where the
    temporary folder cannot be used either.
    """
    require_temporary_space()
    reason = unusable_home(environment)
    if reason:
        folder = temporary_place() / "home"
        try:
            require_own_folder(folder.parent, "HOME")
            require_folder(folder, "HOME")
        except ConfigError as error:
            raise StartupError(
                f"{reason}, and no folder can take its place: {error.message}; "
                "set HOME to a folder that this user can write"
            ) from None
        LOGGER.warning("%s; engines keep their caches in %s", reason, folder)
        environment["HOME"] = str(folder)
        # Or else it names the place that cannot be written.
        environment.pop("XDG_CACHE_HOME", None)
    if not _has_name(environment):
        # PyTorch names a cache by the user's name, which only the environment can tell.
        environment["USER"] = str(os.geteuid())


def unusable_home(environment: Mapping[str, str]) -> str:
    """Return why no caches can be kept in the user's home, "" where they can be."""
    home = environment.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home) or not os.path.isdir(home):
        return f"HOME is no folder ({home})"
    cache = environment.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    for name, folder in (("HOME", home), ("the cache folder", cache)):
        if not _can_be_written(Path(folder)):
            return f"{name} {folder} is not writable"
    return ""


def _can_be_written(folder: Path) -> bool:
    """Permissions alone do not tell: root passes them all, and some file systems take no files."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            return True
    except OSError:
        return False


def temporary_place() -> Path:
    """Return this user's own folder below the system's temporary one; it need not exist yet.

    Raises `StartupError` where no temporary folder can be written.
    """
    try:
        return Path(tempfile.gettempdir()) / f"{PACKAGE}-{os.geteuid()}"
    except FileNotFoundError:
        raise StartupError(
            "no temporary folder can be written: /tmp is full or read-only; mount one of "
            f"{MIN_FREE_BYTES >> 20} MB or more there, or name another by TMPDIR"
        ) from None


def require_temporary_space() -> None:
    """Raises `StartupError` where the temporary folder has too little room for the engines."""
    folder = temporary_place().parent
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise StartupError(
            f"the temporary folder {folder} has {free / (1 << 20):.1f} MB free and the engines "
            f"need {MIN_FREE_BYTES >> 20} MB; make room, or name another folder by TMPDIR"
        )


def _has_name(environment: Mapping[str, str]) -> bool:
    if any(environment.get(name) for name in ("LOGNAME", "USER", "LNAME", "USERNAME")):
        return True
    try:
        return bool(pwd.getpwuid(os.getuid()))
    except KeyError:
        return False
