"""The file of refusals, `--audit-log`: written by a thread, so that no disk holds up the event
loop."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any

from sglang_omni.observability.refusals import AUDIT_LOG
from sglang_omni.protocol.errors import StartupError

LOGGER = logging.getLogger(__name__)
# Lines that wait for a slow disk; those beyond are lost.
MAX_WAITING = 1000
# How long the end of the server waits for such a disk.
STOP_S = 1.0


class AuditFileHandler(WatchedFileHandler):
    """Appends lines to a file that only its user may read, and opens it anew where it was moved
    away, as programs that rotate logs do."""

    _has_failed = False

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return open(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        """Say once that lines are lost, as on a full disk."""
        if not self._has_failed:
            self._has_failed = True
            LOGGER.error("the audit log cannot be written; refusals are missing from it")


class _DroppingQueueHandler(QueueHandler):
    """Never waits: where the queue is full, a line is lost."""

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except Full:
            LOGGER.debug("the audit log is not written fast enough")


class _DroppingQueueListener(QueueListener):
    """Ends also where the queue is full: what waits for a disk that takes nothing is lost."""

    queue: "Queue[Any]"

    def enqueue_sentinel(self) -> None:
        while True:
            try:
                self.queue.put(None, timeout=STOP_S)
                return
            except Full:
                with suppress(Empty):
                    while True:
                        self.queue.get_nowait()


@contextmanager
def audit_file(path: Path | None) -> Iterator[None]:
    """While the body runs, refusals are written to `path` in place of the ordinary log; None leaves
    them there. Raises `StartupError` where it cannot be written."""
    if path is None:
        yield
        return
    try:
        handler = AuditFileHandler(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StartupError(f"--audit-log {path} cannot be written: {reason}") from None
    waiting: Queue[Any] = Queue(MAX_WAITING)
    queueing, listener = _DroppingQueueHandler(waiting), _DroppingQueueListener(waiting, handler)
    listener.start()
    level = AUDIT_LOG.level
    AUDIT_LOG.addHandler(queueing)
    AUDIT_LOG.propagate = False
    AUDIT_LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        AUDIT_LOG.removeHandler(queueing)
        AUDIT_LOG.propagate = True
        AUDIT_LOG.setLevel(level)
        listener.stop()
        handler.close()
