"""Progress reports of SGLang's processes during a start.

The engine's process reads them from a pipe and reports them as its own progress. The plug-in finds
the pipe by an environment variable, and does nothing without it.
"""

import os
import tempfile
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from pathlib import Path

from sglang_omni.system.progress import report_progress, set_progress_reporter

PIPE_VARIABLE = "SGLANG_OMNI_START_REPORTS"
# A line of reports; shorter ones of several processes never mix in a pipe.
MAX_BYTES = 512
# An empty line ends the reader.
_END = b"\n"


@contextmanager
def relay_reports(environment: MutableMapping[str, str] = os.environ) -> Iterator[None]:
    """Report the progress of processes that start meanwhile.

    Every rank reports its phases; those that another has reported before are dropped.
    """
    # A pipe with a name of its own, which is gone when a late report comes.
    with tempfile.TemporaryDirectory(prefix="sglang-omni-start-") as folder:
        pipe = Path(folder) / "reports"
        os.mkfifo(pipe)
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writing = os.open(pipe, os.O_WRONLY)
        os.set_blocking(reading, True)
        environment[PIPE_VARIABLE] = f"{os.getpid()}:{pipe}"
        # A new thread has no context with the reporter of this one.
        thread = threading.Thread(target=copy_context().run, args=(_relay, reading), daemon=True)
        thread.start()
        try:
            yield
        finally:
            del environment[PIPE_VARIABLE]
            os.write(writing, _END)
            thread.join()
            os.close(writing)


def _relay(descriptor: int) -> None:
    seen: set[bytes] = set()
    with os.fdopen(descriptor, "rb") as lines:
        while (line := lines.readline()) != _END:
            if line not in seen:
                seen.add(line)
                report_progress(line.decode(errors="replace").rstrip("\n"))


def send_reports_to_engine() -> None:
    """Let `report_progress` in this process reach the engine's process, if that reads them.

    The engine's own process, which SGLang calls the plug-in in too, keeps its reporter.
    """
    pid, _, pipe = os.environ.get(PIPE_VARIABLE, "").partition(":")
    if pipe and int(pid) != os.getpid():
        set_progress_reporter(lambda text: _send(Path(pipe), text))


def _send(pipe: Path, text: str) -> None:
    # After the start nobody reads them, which is an error at once and no wait for a reader.
    with suppress(OSError):
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            file.write(text.encode()[:MAX_BYTES] + b"\n")
