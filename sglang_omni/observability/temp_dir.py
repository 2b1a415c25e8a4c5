"""A temporary folder that does not outlive its owner.

A killed owner cannot remove its folder. So it holds a lock on the folder, which the kernel releases
when the owner ends. Whoever creates the next folder removes those that are not locked.
"""

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path


class TempFolder:
    """A new folder at `path`, which is removed with its content at `close` or at exit."""

    def __init__(self, prefix: str) -> None:
        """Create the folder, and remove those that killed owners with this prefix left behind."""
        _remove_orphans(prefix)
        self.path, lock = _create(prefix)
        self._remove = weakref.finalize(self, _remove, self.path, lock)

    def close(self) -> None:
        """Remove the folder. A second call does nothing."""
        self._remove()


def _create(prefix: str) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix))
        # Close-on-exec, so that no engine holds the lock.
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path, lock
        os.close(lock)  # Another process removed the folder before it was locked.


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _remove_orphans(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # It belongs to another user, is not a folder, or is gone.
        try:
            # If the lock is held, the owner is alive.
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)
