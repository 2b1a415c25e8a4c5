"""Messages whose shared memory goes with them, for engines on other machines.

On one machine a `SharedArray` pickles as a path. Another machine cannot open it. So the content of
shared memory is sent ahead of its message, in parts, and the receiver creates memory of its own.
What the engine writes there is sent back, ahead of the output that tells of it.
"""

import io
import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np

from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.engines.runtime.transport import BufferCollector

PART_BYTES = 1 << 20


@dataclass(frozen=True)
class PackedMessage:
    """A message between the server and an engine.

    Attributes:
        body: Its pickle.
        buffers: The bytes of its large arrays.
        num_shared: The number of its shared memories.
    """

    body: bytes
    buffers: tuple[np.ndarray, ...]
    num_shared: int


@dataclass(frozen=True)
class Part:
    """Bytes of a shared memory from `offset` on. `index` is its number in its message."""

    index: int
    offset: int
    data: np.ndarray


class _Packer(pickle.Pickler):
    """Replaces shared memory by its number in the message."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        self.collector = BufferCollector()
        self.shared: list[SharedDescriptor] = []
        super().__init__(self.file, pickle.HIGHEST_PROTOCOL, buffer_callback=self.collector)

    def persistent_id(self, value: Any) -> int | None:
        """Return the number of a shared memory, None for any other object."""
        if not isinstance(value, SharedDescriptor):
            return None
        self.shared.append(value)
        return len(self.shared) - 1


class _Unpacker(pickle.Unpickler):
    """Puts shared memory in the places of its numbers."""

    def __init__(self, packed: PackedMessage, shared: Sequence[SharedDescriptor]) -> None:
        super().__init__(io.BytesIO(packed.body), buffers=packed.buffers)
        self._shared = shared

    def persistent_load(self, pid: Any) -> SharedDescriptor:
        """Return the shared memory of a number."""
        return self._shared[pid]


def pack(message: Any) -> tuple[PackedMessage, tuple[SharedDescriptor, ...]]:
    """Return a message without its shared memory, and that memory."""
    packer = _Packer()
    packer.dump(message)
    buffers = tuple(np.frombuffer(view, np.uint8) for view in packer.collector.views)
    shared = tuple(packer.shared)
    return PackedMessage(packer.file.getvalue(), buffers, len(shared)), shared


def unpack(packed: PackedMessage, shared: Sequence[SharedDescriptor] = ()) -> Any:
    """Return a message with the given shared memory."""
    return _Unpacker(packed, shared).load()


def iter_parts(index: int, shared: SharedDescriptor, offset: int = 0) -> Iterator[Part]:
    """Yield the content from `offset` on; nothing if the owner is gone: nobody waits for it.

    Receiving a part, and writing it, overlaps with sending the next one.
    """
    with suppress(OSError), shared.open() as file:
        size = _get_size(file)
        for start in range(offset, size, PART_BYTES):
            # To map the whole content first would take longer than to copy it part by part.
            data = np.empty(min(PART_BYTES, size - start), np.uint8)
            yield Part(index, start, data[: os.preadv(file.fileno(), [data.data], start)])


def count_bytes(shared: SharedDescriptor) -> int:
    """Return the size of the content, 0 if the owner is gone."""
    try:
        with shared.open() as file:
            return _get_size(file)
    except OSError:
        return 0


def _get_size(file: FileIO) -> int:
    return os.fstat(file.fileno()).st_size


def write_part(shared: SharedDescriptor, part: Part) -> None:
    """Write a part where it belongs.

    Raises:
        OSError: The owner is gone, or there is no room.
    """
    with shared.open() as file:
        file.seek(part.offset)
        remaining = part.data.data
        while remaining:
            remaining = remaining[file.write(remaining) :]
