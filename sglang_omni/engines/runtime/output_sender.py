"""The engine's sending side."""

import queue
import socket
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sglang_omni.engines.runtime.orphan_reaper import kill_group
from sglang_omni.engines.runtime.transport import (
    BEAT_INTERVAL_S,
    Frame,
    FromEngine,
    Heartbeat,
    Outputs,
    encode,
)

# The kernel takes up to 1024 pieces at once.
_PIECES = 512


class OutputSender:
    """One thread that writes to the API process, and beats, so that a step never waits for it.

    What waits in its queue is bounded by the window of every request: a request with that many
    unconsumed outputs is stalled.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._waiting: queue.SimpleQueue[Frame | Outputs | None] = queue.SimpleQueue()
        self._counters: Mapping[str, float] = {}
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._write, name="uplink", daemon=True)
        self._thread.start()

    def send(self, message: FromEngine) -> None:
        """Queue a message. Raises here, not in the thread, if it cannot be encoded."""
        self._waiting.put(encode(message))

    def send_outputs(self, outputs: Outputs) -> None:
        """Queue the outputs of a step, to be encoded by the thread: the next step does not wait.

        Their arrays must stay as they are. Outputs that cannot be encoded end the process, as
        nobody is left to raise to.
        """
        self._waiting.put(outputs)

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
        self._waiting.put(None)
        self._thread.join()

    def _write(self) -> None:
        try:
            self._write_until_closed()
        except Exception:
            traceback.print_exc()
            kill_group()

    def _write_until_closed(self) -> None:
        beat_due = time.monotonic()
        closing = False
        while not closing:
            waiting = self._collect(beat_due)
            closing = None in waiting
            pieces = [piece for one in waiting if one is not None for piece in _frame(one)]
            if time.monotonic() >= beat_due:
                pieces += encode(self._beat())
                beat_due = time.monotonic() + BEAT_INTERVAL_S
            try:
                _send_all(self._end, pieces)
            except OSError:
                return  # A broken pipe is the parent's death, which is not this thread's to handle.

    def _collect(self, until: float) -> list[Frame | Outputs | None]:
        """Wait for something to send until `until`, then take everything else that is there."""
        waiting: list[Frame | Outputs | None] = []
        with suppress(queue.Empty):
            waiting.append(self._waiting.get(timeout=max(0.0, until - time.monotonic())))
            while True:
                waiting.append(self._waiting.get_nowait())
        return waiting

    def _beat(self) -> Heartbeat:
        since = self._busy_since
        return Heartbeat(self._counters, 0.0 if since is None else time.monotonic() - since)


def _frame(waiting: Frame | Outputs) -> Frame:
    return encode(waiting) if isinstance(waiting, Outputs) else waiting


def _send_all(end: socket.socket, pieces: Sequence[bytes | memoryview]) -> None:
    """Send the pieces one after the other, without joining them first."""
    rest = [memoryview(piece) for piece in pieces]
    while rest:
        sent = end.sendmsg(rest[:_PIECES])
        while rest and sent >= rest[0].nbytes:
            sent -= rest.pop(0).nbytes
        if sent:
            rest[0] = rest[0][sent:]
