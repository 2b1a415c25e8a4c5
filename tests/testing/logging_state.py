"""Undo what a test does to the loggers, whose handlers outlive the streams that pytest captures."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sglang_omni.system.loggers import OUTPUT_LOG


@contextmanager
def restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, OUTPUT_LOG.handlers = handlers, []
    root.setLevel(level)
    OUTPUT_LOG.setLevel(logging.NOTSET)
    # pytest adds its own handler to every logger that does not propagate.
    OUTPUT_LOG.propagate = True
