"""The audit log file (`--audit-log`), written by a thread, so that a disk never blocks the loop."""

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
# Lines that may wait for a slow disk. Further lines are dropped.
MAX_WAITING = 1000
# How long shutdown waits for a slow disk.
STOP_TIMEOUT_S = 1.0


class AuditFileHandler(WatchedFileHandler):
    """Appends lines to a file that only its owner may read, and reopens it after a rotation."""

    _has_failed = False

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return open(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        """Report once that lines are lost, for example on a full disk."""
        if not self._has_failed:
            self._has_failed = True
            LOGGER.error("the audit log cannot be written; entries are lost until it can")


class _DroppingQueueHandler(QueueHandler):
    """Never blocks: if the queue is full, the line is dropped."""

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except Full:
            LOGGER.debug("the audit log queue is full; an entry was dropped")


class _DroppingQueueListener(QueueListener):
    """Stops even if the queue is full: lines that wait for a blocked disk are dropped."""

    queue: "Queue[Any]"

    def enqueue_sentinel(self) -> None:
        while True:
            try:
                self.queue.put(None, timeout=STOP_TIMEOUT_S)
                return
            except Full:
                with suppress(Empty):
                    while True:
                        self.queue.get_nowait()


@contextmanager
def audit_file(path: Path | None) -> Iterator[None]:
    """Write audit entries to `path` during the body. With None they stay in the ordinary log.

    Raises:
        StartupError: The file cannot be written.
    """
    if path is None:
        yield
        return
    try:
        handler = AuditFileHandler(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StartupError(f"--audit-log {path} cannot be written: {reason}") from None
    waiting: Queue[Any] = Queue(MAX_WAITING)
    queue_handler = _DroppingQueueHandler(waiting)
    listener = _DroppingQueueListener(waiting, handler)
    listener.start()
    level = AUDIT_LOG.level
    AUDIT_LOG.addHandler(queue_handler)
    AUDIT_LOG.propagate = False
    AUDIT_LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        AUDIT_LOG.removeHandler(queue_handler)
        AUDIT_LOG.propagate = True
        AUDIT_LOG.setLevel(level)
        listener.stop()
        handler.close()
