"""Large arrays between processes: memory that its maker owns and the others open by path.

An array of a picture does not go through a socket: it would be copied four times, on the event
loop. Its maker, the API process, hands out an empty `SharedArray`; whoever is told to fill it
writes into it, and whoever is told to read it maps it. The memory has no name in any file system:
it is gone with the last process that holds it, however that process ends.
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
    """Shape and dtype of what lies in a `SharedArray`. NumPy has no bfloat16: such values lie as
    the `uint16` that holds their bits."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


class SharedArray:
    """Memory for one array. Pickles as a path, valid for as long as the maker holds the original.

    The number in the path may go to other memory after that, so the memory's own number, which
    none has after it, goes with it.

    The maker may fill it itself or have it filled once by another process of the same user; only
    then does it have a layout, which the filler returns and the reader is told.
    """

    def __init__(self) -> None:
        """Make an empty one. Raises `OSError` when the process has no file descriptor left."""
        self._own(os.memfd_create("sgl-omni", os.MFD_CLOEXEC))

    def _own(self, descriptor: int) -> None:
        weakref.finalize(self, os.close, descriptor)
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self._inode = os.fstat(descriptor).st_ino

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_inode": self._inode}

    def write(self, array: np.ndarray) -> Layout:
        """Put `array` in; return its layout. Raises `OSError` when the maker is gone, `MemoryError`
        when there is no room for a copy of an array with gaps."""
        layout = Layout(array.shape, array.dtype.str)
        with self._open() as file:
            file.truncate()
            # Not through a mapping, whose pages would be cleared first, one fault after the other.
            rest = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            while rest:
                rest = rest[file.write(rest) :]
        return layout

    def read(self, layout: Layout) -> np.ndarray:
        """The array, mapped, not copied. Raises `OSError` when the maker is gone, `ValueError`
        when less was written than `layout` says."""
        if not layout.nbytes:
            return np.empty(layout.shape, layout.dtype)
        with self._open() as file:
            # The array keeps the mapping alive, and the mapping the memory.
            return _view(mmap.mmap(file.fileno(), layout.nbytes), layout)

    def held(self) -> "SharedArray":
        """The same memory for as long as the caller holds this, and pickled for as long as that,
        whatever becomes of the maker. Raises `OSError` when the maker is gone already."""
        mine = SharedArray.__new__(SharedArray)
        with self._open() as file:
            mine._own(os.dup(file.fileno()))
        return mine

    def _open(self) -> FileIO:
        file = FileIO(self.path, "r+")
        if os.fstat(file.fileno()).st_ino != self._inode:
            file.close()
            raise FileNotFoundError(f"{self.path} is other memory by now")
        return file


def _view(memory: mmap.mmap, layout: Layout) -> np.ndarray:
    return np.frombuffer(memory, layout.dtype).reshape(layout.shape)
