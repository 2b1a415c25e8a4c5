"""The engine's sending side: one thread that writes outputs and heartbeats."""

import queue
import socket
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sglang_omni.engines.runtime.orphan_reaper import kill_group
from sglang_omni.engines.runtime.transport import (
    HEARTBEAT_INTERVAL_S,
    Frame,
    FromEngine,
    Heartbeat,
    Outputs,
    encode,
)

# Buffers per `sendmsg` call; the kernel accepts up to 1024.
_MAX_BUFFERS = 512


class OutputSender:
    """Writes messages and heartbeats to the API process in a thread, so that no step waits.

    The window of every request bounds the queue: a request with that many unconsumed outputs is
    stalled.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._waiting: queue.SimpleQueue[Frame | Outputs | None] = queue.SimpleQueue()
        self._counters: Mapping[str, float] = {}
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._write, name="output-sender", daemon=True)
        self._thread.start()

    def send(self, message: FromEngine) -> None:
        """Queue a message. Raises here, not in the thread, if the message cannot be encoded."""
        self._waiting.put(encode(message))

    def send_outputs(self, outputs: Outputs) -> None:
        """Queue the outputs of a step. The thread encodes them, so the next step does not wait.

        Their arrays must not change any more. Outputs that cannot be encoded end the process,
        because the thread has no caller to raise to.
        """
        self._waiting.put(outputs)

    def begin_work(self) -> None:
        """Start the clock that heartbeats report as `busy_s`."""
        self._busy_since = time.monotonic()

    def end_work(self) -> None:
        """Stop the clock that heartbeats report."""
        self._busy_since = None

    def report(self, counters: Mapping[str, float]) -> None:
        """Set the counters of the next heartbeats."""
        self._counters = dict(counters)

    def close(self) -> None:
        """Send what is queued, then end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _write(self) -> None:
        try:
            self._write_until_closed()
        except Exception:
            traceback.print_exc()
            kill_group()

    def _write_until_closed(self) -> None:
        heartbeat_at = time.monotonic()
        closing = False
        while not closing:
            waiting = self._collect(heartbeat_at)
            closing = None in waiting
            buffers = [part for item in waiting if item is not None for part in _to_frame(item)]
            if time.monotonic() >= heartbeat_at:
                buffers += encode(self._heartbeat())
                heartbeat_at = time.monotonic() + HEARTBEAT_INTERVAL_S
            try:
                send_all(self._sock, buffers)
            except OSError:
                return  # A broken pipe means that the parent died, which the kernel handles.

    def _collect(self, until: float) -> list[Frame | Outputs | None]:
        """Wait for the first item until the time `until`, then take all that are queued."""
        waiting: list[Frame | Outputs | None] = []
        with suppress(queue.Empty):
            waiting.append(self._waiting.get(timeout=max(0.0, until - time.monotonic())))
            while True:
                waiting.append(self._waiting.get_nowait())
        return waiting

    def _heartbeat(self) -> Heartbeat:
        since = self._busy_since
        return Heartbeat(self._counters, 0.0 if since is None else time.monotonic() - since)


def _to_frame(waiting: Frame | Outputs) -> Frame:
    return encode(waiting) if isinstance(waiting, Outputs) else waiting


def send_all(sock: socket.socket, buffers: Sequence[bytes | memoryview]) -> None:
    """Send the buffers in order, without joining them."""
    remaining = [memoryview(buffer) for buffer in buffers]
    while remaining:
        sent = sock.sendmsg(remaining[:_MAX_BUFFERS])
        while remaining and sent >= remaining[0].nbytes:
            sent -= remaining.pop(0).nbytes
        if sent:
            remaining[0] = remaining[0][sent:]
