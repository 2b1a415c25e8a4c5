"""Records which functions of the package run, in each process with this folder on PYTHONPATH.

Python imports this module when it starts. `$CALL_RECORDER` is a folder. While its file `phase` has
a name in it, the functions that are called are written to `PID.json` under that name.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType

LOOK_S = 0.02


class CallRecorder:
    """Records the calls of this process from now on."""

    def __init__(self, folder: Path, package: str) -> None:
        """`package` is the folder whose files are recorded, with a slash at its end."""
        self._folder, self._package = folder, package
        self._calls: dict[str, set[tuple[str, str]]] = {}
        self._phase = ""
        self._start_following()
        # A fork keeps the profile functions, but not the thread.
        os.register_at_fork(after_in_child=self._restart)
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def _start_following(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def _restart(self) -> None:
        self._calls, self._phase = {}, ""
        self._start_following()

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and self._phase:
            code = frame.f_code
            if code.co_filename.startswith(self._package):
                name = code.co_filename.removeprefix(self._package)
                self._calls[self._phase].add((name, code.co_qualname))

    def _follow(self) -> None:
        """Change the phase when the file does, and write what was recorded before."""
        path = self._folder / "phase"
        while True:
            phase = path.read_text(encoding="utf-8") if path.exists() else ""
            if phase != self._phase:
                self._calls.setdefault(phase, set())
                self._phase = phase
                self._write()
            time.sleep(LOOK_S)

    def _write(self) -> None:
        calls = {phase: sorted(found.copy()) for phase, found in self._calls.items() if phase}
        written = self._folder / f"{os.getpid()}.tmp"
        written.write_text(json.dumps(calls), encoding="utf-8")
        written.replace(self._folder / f"{os.getpid()}.json")


if target := os.environ.get("CALL_RECORDER"):
    CallRecorder(Path(target), os.environ["CALL_RECORDER_PACKAGE"])
