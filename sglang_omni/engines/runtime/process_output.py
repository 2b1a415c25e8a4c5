"""The output of an engine process: a file, the last lines in memory, warnings in our log."""

import logging
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from sglang_omni.engines.runtime.log_records import EngineRecord, parse_record
from sglang_omni.system.loggers import OUTPUT_LOG

LOGGER = logging.getLogger(__name__)

# Shown lines go through the handlers of this logger. Without handlers they are printed unchanged.

MAX_FILE_BYTES = 8 << 20
"""The size limit of an engine's log file, and of the rotated one."""
_TAIL_LINES = 40
# SGLang prints all of its arguments in one line.
_MAX_TAIL_LINE_CHARACTERS = 500


@dataclass(frozen=True)
class OutputRules:
    """Where the output of engines goes: to files in `folder`, and to the terminal if `shown`."""

    folder: Path | None = None
    shown: bool = False


TO_TERMINAL = OutputRules()


class _LogFile(RotatingFileHandler):
    """A log file of bounded size that raises write errors to its caller."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path,
            maxBytes=MAX_FILE_BYTES,
            backupCount=1,
            encoding="utf-8",
            errors="backslashreplace",
        )
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))

    def write(self, text: str) -> None:
        """Append a line with the time.

        Raises:
            OSError: The file cannot be written.
        """
        self.emit(logging.makeLogRecord({"msg": "%s", "args": (text,)}))

    def handleError(self, record: logging.LogRecord) -> None:
        """Raise the error that is being handled."""
        raise


def truncate_line(line: str) -> str:
    """Truncate a long line for an error message. Tracebacks of several lines are kept."""
    if len(line) <= _MAX_TAIL_LINE_CHARACTERS or "\n" in line:
        return line
    return line[: _MAX_TAIL_LINE_CHARACTERS - 1] + "…"


class EngineOutput:
    """The output of one engine process. The thread that reads it calls `handle_line`.

    With a folder, lines go to the file NAME.log there, and warnings and errors of our own loggers
    also go to the server's log. Without a folder, or with `shown`, every line is shown. A file that
    cannot be written is reported once, and lines are shown from then on.
    """

    def __init__(self, name: str, rules: OutputRules) -> None:
        self._name = name
        self._shown = rules.shown
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._file: _LogFile | None = None
        if rules.folder is not None:
            self._open(rules.folder / f"{name}.log")

    @property
    def tail(self) -> str:
        """Return the last lines."""
        return "\n".join(self._tail)

    @property
    def error_suffix(self) -> str:
        """Return the last lines and the path of the full output, to append to an error message."""
        return f"\n{self.tail}".rstrip() + self.location

    @property
    def location(self) -> str:
        """Return the path of the full output, to append to an error message; "" without a file."""
        return f"\nFull output: {self._file.baseFilename}" if self._file else ""

    def handle_line(self, line: str) -> None:
        """Store a line, and show it if the rules say so."""
        record = parse_record(line)
        text = str(record) if record else line
        self._tail.append(truncate_line(text))
        self._write(text)
        # Errors of our own stderr are ignored: the pipe must be drained, or the engine blocks.
        with suppress(OSError, ValueError):
            self._show(record, text)

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()

    def _open(self, path: Path) -> None:
        try:
            self._file = _LogFile(path)
        except OSError as error:
            self._report(path, error)

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        try:
            self._file.write(text)
        except OSError as error:
            path, self._file = Path(self._file.baseFilename), None
            self._report(path, error)

    def _report(self, path: Path, error: OSError) -> None:
        LOGGER.error("cannot write %s: %s; showing its lines here", path, error.strerror)

    def _show(self, record: EngineRecord | None, text: str) -> None:
        if self._shown or self._file is None:
            self._show_line(text)
        elif record and record.level >= logging.WARNING:
            logger = logging.getLogger(record.logger)
            logger.log(record.level, "%s", record.message, extra={"engine": self._name})

    def _show_line(self, text: str) -> None:
        if OUTPUT_LOG.handlers:
            OUTPUT_LOG.info("%s", text, extra={"engine": self._name})
        else:
            sys.stderr.write(f"[{self._name}] {text}\n")
