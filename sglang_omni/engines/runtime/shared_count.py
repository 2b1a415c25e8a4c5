"""A number that one process changes and other processes of the same user read at any time."""

from functools import cached_property

import numpy as np

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray

LAYOUT = Layout((1,), "<i8")


class SharedCount:
    """A count in shared memory. A pickle is a handle of it, valid while the owner holds it."""

    def __init__(self) -> None:
        """Create a count of 0.

        Raises:
            OSError: The process has no file descriptor left.
        """
        self._memory = SharedArray()
        self._memory.write(np.zeros(LAYOUT.shape, LAYOUT.dtype))

    @property
    def value(self) -> int:
        """Return the count. Raises `OSError` if it is opened only after its owner is gone."""
        return int(self._number[0])

    def add(self, change: int) -> None:
        """Change the count; for its owner alone, in one thread."""
        self._number[0] += change

    @cached_property
    def _number(self) -> np.ndarray:
        return self._memory.read(LAYOUT)

    def __getstate__(self) -> dict[str, SharedArray]:
        # Each process maps the memory by itself.
        return {"_memory": self._memory}
