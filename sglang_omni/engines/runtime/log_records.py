"""Log records that an engine sends to the server as lines of its output.

A record is one line: a record separator (RFC 7464) and a JSON array. So records stay in order with
what libraries print, and records that an engine logs just before it dies still arrive.
"""

import json
import logging
import os
from collections.abc import MutableMapping
from dataclasses import dataclass

SEPARATOR = "\x1e"
# Set in an engine and in every process it starts. Stock SGLang with our plug-in does not set it.
ENGINE_VARIABLE = "SGLANG_OMNI_ENGINE"
PACKAGE = "sglang_omni"


@dataclass(frozen=True)
class EngineRecord:
    """A log record of an engine process. `level` is a numeric level of `logging`."""

    level: int
    logger: str
    message: str

    def __str__(self) -> str:
        return f"{logging.getLevelName(self.level)} {self.logger}: {self.message}"


class RecordFormatter(logging.Formatter):
    """Formats a record, including its traceback, as a line for the server."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line that `parse_record` reads."""
        fields = (record.levelno, record.name, super().format(record))
        return SEPARATOR + json.dumps(fields)


def parse_record(line: str) -> EngineRecord | None:
    """Return the record in a line of output, or None if a library printed the line."""
    if not line.startswith(SEPARATOR):
        return None
    try:
        level, logger, message = json.loads(line[1:])
    except (ValueError, TypeError):
        return None
    return EngineRecord(level, logger, message)


def log_to_server(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make the package's loggers in this process write lines for the server.

    The records do not reach the root logger, which libraries may configure as they like.
    """
    environment[ENGINE_VARIABLE] = "1"
    handler = logging.StreamHandler()
    handler.setFormatter(RecordFormatter())
    logger = logging.getLogger(PACKAGE)
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)


def is_engine_process() -> bool:
    """Return whether this process is an engine of the server or was started by one."""
    return ENGINE_VARIABLE in os.environ
