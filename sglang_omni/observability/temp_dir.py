"""A folder below the system's temporary one that does not outlast its owner, however that ends.

An owner that is killed removes nothing. So it holds a lock on the folder, which the kernel lets go
of with its last breath, and whoever makes the next folder removes those that nobody holds.
"""

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path


class TempFolder:
    """A new folder at `path`, which goes with its content at `close` or at the end of the owner."""

    def __init__(self, prefix: str) -> None:
        """Make one, and remove what killed owners of folders with this prefix left behind."""
        _sweep(prefix)
        self.path, lock = _make(prefix)
        self._remove = weakref.finalize(self, _remove, self.path, lock)

    def close(self) -> None:
        """Remove the folder. Harmless a second time."""
        self._remove()


def _make(prefix: str) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix))
        # Closed in every process that this one executes: an engine does not hold it.
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path, lock
        os.close(lock)  # Another owner found it before it was held, and took it for left behind.


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _sweep(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # Another user's, no folder, or gone meanwhile.
        try:
            # Locked by another, it has an owner who lives.
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)
