"""Arrays in anonymous shared memory, owned by one process and opened by others through a path.

Sending an image through a socket would copy it four times, on the event loop. Instead the owner,
usually the API process, creates an empty `SharedArray`, one process writes into it, and another one
maps it. The memory has no name in any file system: the kernel frees it with the last process that
holds it, however that process ends.
"""

import mmap
import os
import weakref
from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Layout:
    """Shape and dtype of the array in a `SharedArray`.

    NumPy has no bfloat16. Such values are stored as the `uint16` with the same bits.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Return the size of the array in bytes."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


class SharedArray:
    """Shared memory for one array. Pickles as a path, valid while the owner holds the original.

    File descriptors are reused, so the pickle contains the inode too, which is checked on open.

    The owner may write the array itself or have another process of the same user write it once.
    `write` returns the layout, which the reader needs.
    """

    def __init__(self) -> None:
        """Create empty memory.

        Raises:
            OSError: The process has no file descriptor left.
        """
        self._own(os.memfd_create("sgl-omni", os.MFD_CLOEXEC))

    def _own(self, descriptor: int) -> None:
        weakref.finalize(self, os.close, descriptor)
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self._inode = os.fstat(descriptor).st_ino

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_inode": self._inode}

    def write(self, array: np.ndarray) -> Layout:
        """Write `array` and return its layout.

        Raises:
            OSError: The owner is gone.
            MemoryError: There is no room to copy an array that is not contiguous.
        """
        layout = Layout(array.shape, array.dtype.str)
        with self._open() as file:
            file.truncate()
            # A mapping would be slower: the kernel clears each of its pages at a page fault.
            remaining = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            while remaining:
                remaining = remaining[file.write(remaining) :]
        return layout

    def read(self, layout: Layout) -> np.ndarray:
        """Map the array without a copy.

        Raises:
            OSError: The owner is gone.
            ValueError: Less was written than `layout` requires.
        """
        if not layout.nbytes:
            return np.empty(layout.shape, layout.dtype)
        with self._open() as file:
            # The array keeps the mapping alive, and the mapping keeps the memory alive.
            return _view(mmap.mmap(file.fileno(), layout.nbytes), layout)

    def duplicate(self) -> "SharedArray":
        """Return a handle of the same memory that this process owns.

        It, and its pickles, stay valid while the caller holds it, even after the first owner ends.

        Raises:
            OSError: The owner is gone already.
        """
        duplicate = SharedArray.__new__(SharedArray)
        with self._open() as file:
            duplicate._own(os.dup(file.fileno()))
        return duplicate

    def _open(self) -> FileIO:
        file = FileIO(self.path, "r+")
        if os.fstat(file.fileno()).st_ino != self._inode:
            file.close()
            raise FileNotFoundError(f"{self.path} now refers to other memory")
        return file


def _view(memory: mmap.mmap, layout: Layout) -> np.ndarray:
    return np.frombuffer(memory, layout.dtype).reshape(layout.shape)
