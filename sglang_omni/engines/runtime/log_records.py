"""Log records on their way from an engine to the server, as lines of the engine's output.

A record is one line: a record separator (RFC 7464) and a JSON object. So records stay in order with
what libraries print, and those that an engine logs just before it dies arrive too.
"""

import json
import logging
import os
from collections.abc import MutableMapping
from dataclasses import dataclass

SEPARATOR = "\x1e"
# Set for an engine and every process it starts; stock SGLang with our plug-in logs as usual.
VARIABLE = "SGLANG_OMNI_ENGINE"
PACKAGE = "sglang_omni"


@dataclass(frozen=True)
class EngineRecord:
    """What a logger of an engine's process said; `level` is a number of `logging`."""

    level: int
    logger: str
    message: str

    def __str__(self) -> str:
        return f"{logging.getLevelName(self.level)} {self.logger}: {self.message}"


class RecordFormatter(logging.Formatter):
    """Formats a record as a line for the server, the traceback included."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, which `parse_record` reads."""
        fields = (record.levelno, record.name, super().format(record))
        return SEPARATOR + json.dumps(fields)


def parse_record(line: str) -> EngineRecord | None:
    """Return the record of a line of output, or None if a library printed the line."""
    if not line.startswith(SEPARATOR):
        return None
    try:
        level, logger, message = json.loads(line[1:])
    except (ValueError, TypeError):
        return None
    return EngineRecord(level, logger, message)


def log_to_server(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have the package's loggers in this process write lines for the server.

    Other libraries may configure the root logger as they like: these records do not reach it.
    """
    environment[VARIABLE] = "1"
    handler = logging.StreamHandler()
    handler.setFormatter(RecordFormatter())
    logger = logging.getLogger(PACKAGE)
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)


def is_engine() -> bool:
    """Return whether this process is an engine of the server, or was started by one."""
    return VARIABLE in os.environ
