"""PyTorch's profiler in an engine that steps. Every method runs on the thread that steps."""

import logging
import os
import sys
from pathlib import Path
from typing import Any

from sglang_omni.engines.runtime.failure import describe

LOGGER = logging.getLogger(__name__)


class TorchProfiler:
    """Owns the profiler of one process, if one is at work."""

    def __init__(self) -> None:
        self._profiler: Any = None
        self._folder = Path()

    def switch(self, folder: str | None) -> None:
        """Begin to profile, or with None end it and write a Chrome trace to the folder.

        What goes wrong is logged: no request fails because nobody could watch it.
        """
        try:
            if folder is None:
                self._stop()
            else:
                self._start(Path(folder))
        except Exception as error:
            LOGGER.error("cannot profile: %s", describe(error))

    def _start(self, folder: Path) -> None:
        # Never imported for this: an engine without it has nothing to profile.
        if "torch" not in sys.modules:
            raise RuntimeError("this engine computes nothing with PyTorch")
        from torch.profiler import profile

        if self._profiler is not None:
            raise RuntimeError("it is under way already")
        folder.mkdir(parents=True, exist_ok=True)
        profiler = profile()
        profiler.start()
        self._profiler, self._folder = profiler, folder

    def _stop(self) -> None:
        if self._profiler is None:
            raise RuntimeError("it was not begun")
        profiler, self._profiler = self._profiler, None
        profiler.stop()
        # Complete before it has its name: whoever waits for it reads it whole.
        begun = self._folder / f".{os.getpid()}.part"
        profiler.export_chrome_trace(str(begun))
        begun.rename(self._folder / f"trace-{os.getpid()}.json")
