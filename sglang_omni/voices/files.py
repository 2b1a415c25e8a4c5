"""Atomic file writes in a folder that several servers may write to.

A file is first written as `*.part`, and its writer holds a lock on it. The kernel releases the lock
when the writer ends in any way, so an unlocked `*.part` is abandoned and can be removed.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sglang_omni.protocol.errors import InsufficientStorage

PART_SUFFIX = ".part"
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file that only this user may read, completely or not at all.

    Raises `InsufficientStorage` if the disk is full.
    """
    try:
        _write_and_rename(path, data)
    except OSError as error:
        if error.errno in DISK_FULL_ERRNOS:
            raise InsufficientStorage("the server's disk is full; nothing was stored") from None
        raise


def remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove incomplete files of writers that were killed. Raises `OSError`."""
    for part in folder.glob(f"{prefix}*{PART_SUFFIX}"):
        with (
            suppress(OSError),
            _open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor,
        ):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


@contextmanager
def open_regular_file(path: Path) -> Iterator[str]:
    """Open a regular file that is not a link, and yield a path that leads to exactly this file.

    Raises `OSError`, and `ValueError` if it is not a regular file.
    """
    with _open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path.name} is not a regular file")
        yield f"/proc/self/fd/{descriptor}"


def _write_and_rename(path: Path, data: bytes) -> None:
    part = path.with_suffix(PART_SUFFIX)
    with _open_locked_part(part) as descriptor:
        try:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    _sync_folder(path.parent)


@contextmanager
def _open_locked_part(part: Path) -> Iterator[int]:
    """Create a file and hold its lock during the body."""
    while True:
        with _open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Another server may have removed it as abandoned before it was locked.
            if part.exists():
                yield descriptor
                return


@contextmanager
def _open(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a new entry survives a power loss."""
    with _open(folder, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)
