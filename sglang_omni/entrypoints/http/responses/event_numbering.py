"""Events of a stream that are numbered, as those of a response are."""

from typing import Any

from sglang_omni.entrypoints.http.responses.sse import NamedEvent


class EventNumbering:
    """Numbers the events of one stream."""

    def __init__(self) -> None:
        self._next_number = 0

    def build(self, name: str, /, **fields: Any) -> NamedEvent:
        """Return the next event."""
        return NamedEvent(name, {"type": name, **fields, "sequence_number": self._take()})

    def complete(self, name: str, data: bytes) -> NamedEvent:
        """Return the next event, given the JSON of all its fields but the number."""
        return NamedEvent(name, b'%b,"sequence_number":%d}' % (data[:-1], self._take()))

    def _take(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number
