"""The PyTorch profiler in an engine that steps. Every method runs on the thread that steps."""

import logging
import os
import sys
from pathlib import Path
from typing import Any

from sglang_omni.engines.runtime.failure import describe

LOGGER = logging.getLogger(__name__)


class TorchProfiler:
    """Owns the profiler of one process while it runs."""

    def __init__(self) -> None:
        self._profiler: Any = None
        self._folder = Path()

    def switch(self, folder: str | None) -> None:
        """Start the profiler; with None, stop it and write a Chrome trace to the folder before.

        Errors are logged: a profiler that fails must not fail a request.
        """
        try:
            if folder is None:
                self._stop()
            else:
                self._start(Path(folder))
        except Exception as error:
            LOGGER.error("cannot profile: %s", describe(error))

    def _start(self, folder: Path) -> None:
        # PyTorch is not imported for this: an engine without it has nothing to profile.
        if "torch" not in sys.modules:
            raise RuntimeError("this engine does not use PyTorch")
        from torch.profiler import profile

        if self._profiler is not None:
            raise RuntimeError("the profiler is already running")
        folder.mkdir(parents=True, exist_ok=True)
        profiler = profile()
        profiler.start()
        self._profiler, self._folder = profiler, folder

    def _stop(self) -> None:
        if self._profiler is None:
            raise RuntimeError("the profiler is not running")
        profiler, self._profiler = self._profiler, None
        profiler.stop()
        # The file is renamed when complete, so that a reader never sees a part of it.
        partial = self._folder / f".{os.getpid()}.part"
        profiler.export_chrome_trace(str(partial))
        partial.rename(self._folder / f"trace-{os.getpid()}.json")
