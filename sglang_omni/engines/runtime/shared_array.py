"""Arrays in anonymous shared memory, owned by one process and opened by others through a path.

Sending an image through a socket would copy it four times, on the event loop. Instead the owner,
usually the API process, creates an empty `SharedArray`, one process writes into it, and another one
maps it. The memory has no name in any file system: the kernel frees it with the last process that
holds it, however that process ends.
"""

import mmap
import os
from dataclasses import dataclass

import numpy as np

from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor


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


class SharedArray(SharedDescriptor):
    """Shared memory for one array.

    The owner may write the array itself or have another process of the same user write it once.
    `write` returns the layout, which the reader needs.
    """

    def __init__(self) -> None:
        """Create empty memory.

        Raises:
            OSError: The process has no file descriptor left.
        """
        super().__init__(os.memfd_create("sgl-omni", os.MFD_CLOEXEC))

    def write(self, array: np.ndarray) -> Layout:
        """Write `array` and return its layout.

        Raises:
            OSError: The owner is gone.
            MemoryError: There is no room to copy an array that is not contiguous.
        """
        layout = Layout(array.shape, array.dtype.str)
        with self.open() as file:
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
        with self.open() as file:
            # The array keeps the mapping alive, and the mapping keeps the memory alive.
            return _view(mmap.mmap(file.fileno(), layout.nbytes), layout)

    def duplicate(self) -> "SharedArray":
        """Return a handle of the same memory that this process owns.

        It, and its pickles, stay valid while the caller holds it, even after the first owner ends.

        Raises:
            OSError: The owner is gone already.
        """
        duplicate = SharedArray.__new__(SharedArray)
        with self.open() as file:
            duplicate._own(os.dup(file.fileno()))
        return duplicate


def _view(memory: mmap.mmap, layout: Layout) -> np.ndarray:
    return np.frombuffer(memory, layout.dtype).reshape(layout.shape)
