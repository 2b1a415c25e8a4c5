"""The shared memory of requests in flight, at both ends of a link to another machine."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from sglang_omni.engines.remote.packed_message import Part, count_bytes, iter_parts, write_part
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor


class RequestMemory:
    """Shared memory by request, held until the request ends.

    One thread adds and cancels, another one fills and ends requests.
    """

    def __init__(self) -> None:
        self._shared: dict[str, Sequence[SharedDescriptor]] = {}
        # How many bytes of each both ends have.
        self._known_bytes: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._shared)

    def hold(self, request_id: str, shared: Sequence[SharedDescriptor]) -> None:
        """Hold the memory of a new request."""
        if shared:
            self._known_bytes[request_id] = [count_bytes(one) for one in shared]
            self._shared[request_id] = shared

    def release(self, request_id: str) -> None:
        """Drop the memory of a request that has ended or was cancelled."""
        self._shared.pop(request_id, None)
        self._known_bytes.pop(request_id, None)

    def iter_new_parts(self, request_id: str) -> Iterator[Part]:
        """Yield what the engine wrote for a request since the last call."""
        shared, known_bytes = self._shared.get(request_id), self._known_bytes.get(request_id)
        if shared is None or known_bytes is None:
            return
        for index, one in enumerate(shared):
            for part in iter_parts(index, one, known_bytes[index]):
                known_bytes[index] = part.offset + part.data.nbytes
                yield part

    def write(self, request_id: str, part: Part) -> None:
        """Write what the engine wrote. Nothing is written for a request that was cancelled."""
        shared = self._shared.get(request_id)
        if shared is not None:
            with suppress(FileNotFoundError):  # The owner has cancelled the request.
                write_part(shared[part.index], part)


class ArrivingMemory:
    """Shared memory whose parts arrive ahead of its message. Used by one thread."""

    def __init__(self) -> None:
        self._arrived: dict[int, SharedArray] = {}

    def write(self, part: Part) -> None:
        """Write a part into memory of this process.

        Raises:
            OSError: The memory cannot be had.
        """
        if part.index not in self._arrived:
            self._arrived[part.index] = SharedArray()
        write_part(self._arrived[part.index], part)

    def take(self, count: int) -> tuple[SharedArray, ...]:
        """Return the memory of the message that follows: what arrived, else empty memory."""
        arrived, self._arrived = self._arrived, {}
        return tuple(arrived.get(index) or SharedArray() for index in range(count))
