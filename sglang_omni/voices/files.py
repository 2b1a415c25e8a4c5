"""Files that appear whole or not at all, in a folder that several servers may write to.

A file is written under another name, `*.part`, which its writer holds a lock on. The kernel lets go
of the lock when the writer ends, however it ends, so whoever finds a `*.part` that nobody holds may
remove it.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sglang_omni.protocol.errors import InsufficientStorage

PART = ".part"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that only this user may read. Raises `InsufficientStorage` where there is no
    room for it; nothing is left of it then."""
    try:
        _write(path, data)
    except OSError as error:
        if error.errno in FULL:
            raise InsufficientStorage(
                "the server has no room left to store this; nothing was stored"
            ) from None
        raise


def remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove what writers that were killed left half-written. Raises `OSError`."""
    for part in folder.glob(f"{prefix}*{PART}"):
        with (
            suppress(OSError),
            _opened(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor,
        ):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


@contextmanager
def open_file(path: Path) -> Iterator[str]:
    """Open an ordinary file that is no link; give a path that leads to just this file.

    Raises `OSError`, and `ValueError` for what is no ordinary file.
    """
    with _opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path.name} is no ordinary file")
        yield f"/proc/self/fd/{descriptor}"


def _write(path: Path, data: bytes) -> None:
    part = path.with_suffix(PART)
    with _opened_part(part) as descriptor:
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
def _opened_part(part: Path) -> Iterator[int]:
    """Make a file and hold its lock."""
    while True:
        with _opened(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Another server may have found it before it was held, and taken it for abandoned.
            if part.exists():
                yield descriptor
                return


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Have a new entry of a folder survive a loss of power."""
    with _opened(folder, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)
