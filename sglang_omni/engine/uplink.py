"""The engine's sending side."""

import queue
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from sglang_omni.engine.transport import BEAT_INTERVAL_S, Beat, FromEngine, encode


class Uplink:
    """One thread that writes to the API process, and beats, so that a step never waits for it.

    What waits in its queue is bounded by the window of every request: a request with that many
    unconsumed outputs is stalled.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._counters: Mapping[str, float] = {}
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._write, name="uplink", daemon=True)
        self._thread.start()

    def send(self, message: FromEngine) -> None:
        """Queue a message. Raises here, not in the thread, if it cannot be encoded."""
        self._frames.put(encode(message))

    def begin_work(self) -> None:
        """Start the clock that the beats report."""
        self._busy_since = time.monotonic()

    def end_work(self) -> None:
        """Stop that clock."""
        self._busy_since = None

    def report(self, counters: Mapping[str, float]) -> None:
        """Take the counters for the beats to come."""
        self._counters = dict(counters)

    def close(self) -> None:
        """Send what is queued and end the thread."""
        self._frames.put(None)
        self._thread.join()

    def _write(self) -> None:
        beat_due = time.monotonic()
        closing = False
        # A broken pipe is the parent's death, which is not this thread's to handle.
        with suppress(OSError):
            while not closing:
                frames = self._collect(beat_due)
                closing = None in frames
                if time.monotonic() >= beat_due:
                    frames.append(encode(self._beat()))
                    beat_due = time.monotonic() + BEAT_INTERVAL_S
                self._end.sendall(b"".join(frame for frame in frames if frame is not None))

    def _collect(self, until: float) -> list[bytes | None]:
        """Wait for a frame until `until`, then take every other that is there."""
        frames: list[bytes | None] = []
        with suppress(queue.Empty):
            frames.append(self._frames.get(timeout=max(0.0, until - time.monotonic())))
            while True:
                frames.append(self._frames.get_nowait())
        return frames

    def _beat(self) -> Beat:
        since = self._busy_since
        return Beat(self._counters, 0.0 if since is None else time.monotonic() - since)
