"""What an engine process prints: kept in a file, its last lines in memory, warnings in our log."""

import logging
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from sglang_omni.engines.runtime.log_records import EngineRecord, parse_record

LOGGER = logging.getLogger(__name__)

# The lines that are shown take the form of its handlers; without any they are printed as they are.
OUTPUT = logging.getLogger("sglang_omni.engines.runtime.process_output")

FILE_BYTES = 8 << 20
"""An engine's file and the one before it have at most so many bytes each."""
_TAIL_LINES = 40
# SGLang prints all of its arguments in one line.
_TAIL_LINE_CHARACTERS = 500


@dataclass(frozen=True)
class OutputRules:
    """Where engines' output goes: into files in `folder`, to the terminal if `shown`."""

    folder: Path | None = None
    shown: bool = False


TO_TERMINAL = OutputRules()


class _LogFile(RotatingFileHandler):
    """A file of bounded size that reports what it cannot write to its caller."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, maxBytes=FILE_BYTES, backupCount=1, encoding="utf-8", errors="backslashreplace"
        )
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))

    def write(self, text: str) -> None:
        """Add a line with the time. Raises `OSError`."""
        self.emit(logging.makeLogRecord({"msg": "%s", "args": (text,)}))

    def handleError(self, record: logging.LogRecord) -> None:
        """Raise what kept the record from being written."""
        raise


def shorten(line: str) -> str:
    """Return a line as the message of an error has it; a traceback of several lines is kept."""
    if len(line) <= _TAIL_LINE_CHARACTERS or "\n" in line:
        return line
    return line[: _TAIL_LINE_CHARACTERS - 1] + "…"


class EngineOutput:
    """The output of one engine process. `take` is for the thread that reads it.

    With a folder the lines go into the file NAME.log there; of these, warnings and errors of our
    own loggers go into the server's log. Without one, or where the rules say so, every line is
    shown. A file that cannot be written is reported once; lines are shown from then on.
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
        """The last lines."""
        return "\n".join(self._tail)

    @property
    def last_words(self) -> str:
        """The last lines and where all of them are, as the rest of an error message."""
        return f"\n{self.tail}".rstrip() + self.place

    @property
    def place(self) -> str:
        """Where all of the output is, as the rest of an error message; "" where it was shown."""
        return f"\nAll of its output: {self._file.baseFilename}" if self._file else ""

    def take(self, line: str) -> None:
        """Keep a line and show it where it is to be shown."""
        record = parse_record(line)
        text = str(record) if record else line
        self._tail.append(shorten(text))
        self._write(text)
        # Wherever our own stderr leads, the engine's pipe must be emptied, or the engine blocks.
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
        LOGGER.error("cannot write %s: %s; its lines follow here", path, error.strerror)

    def _show(self, record: EngineRecord | None, text: str) -> None:
        if self._shown or self._file is None:
            self._show_line(text)
        elif record and record.level >= logging.WARNING:
            logger = logging.getLogger(record.logger)
            logger.log(record.level, "%s", record.message, extra={"engine": self._name})

    def _show_line(self, text: str) -> None:
        if OUTPUT.handlers:
            OUTPUT.info("%s", text, extra={"engine": self._name})
        else:
            sys.stderr.write(f"[{self._name}] {text}\n")
