"""An open file of one process that others of the same user open through a path."""

import os
import tempfile
import weakref
from io import FileIO
from typing import Any, Self


class SharedDescriptor:
    """A file descriptor. Pickles as a path, valid while the owner holds the original.

    File descriptors are reused, so the pickle contains the inode too, which is checked on open.
    The kernel frees a file without a name with the last process that has it open.
    """

    def __init__(self, descriptor: int) -> None:
        """Take ownership of `descriptor`, which is closed with this object."""
        self._own(descriptor)

    @classmethod
    def create_file(cls, content: bytes = b"") -> Self:
        """Create a file without a name, on disk, in the folder for temporary files.

        Raises:
            OSError: The file cannot be created or written.
        """
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.flush()
            return cls(os.dup(file.fileno()))

    @classmethod
    def create_in_memory(cls, content: bytes) -> Self:
        """Create a file without a name in memory, also where no disk and no `/dev/shm` has room.

        Raises:
            OSError: The memory cannot be had.
        """
        descriptor = os.memfd_create("sglang-omni", os.MFD_CLOEXEC)
        try:
            with FileIO(descriptor, "w", closefd=False) as file:
                file.write(content)
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def open(self) -> FileIO:
        """Open the file for reading and writing, at its start.

        Raises:
            OSError: The owner is gone.
        """
        file = FileIO(self.path, "r+")
        if os.fstat(file.fileno()).st_ino != self._inode:
            file.close()
            raise FileNotFoundError(f"{self.path} now refers to another file")
        return file

    def _own(self, descriptor: int) -> None:
        weakref.finalize(self, os.close, descriptor)
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self._inode = os.fstat(descriptor).st_ino

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_inode": self._inode}
