"""Room on disk for the files that SGLang's processes keep their metrics in.

They map sparse files into memory and write to them. A page that the disk has no room for ends the
process by SIGBUS, so room is taken before it is needed.
"""

import os
from contextlib import suppress
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


class MetricFiles:
    """Takes room for the files in a folder, as often as they grow. None has no folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._reserved: dict[str, int] = {}

    def reserve(self) -> None:
        """Take room for every file that is new or larger than before. A full disk is no error:
        what was written so far has its room."""
        if self._folder is None:
            return
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                size = entry.stat().st_size
                if size > self._reserved.get(entry.name, 0):
                    _allocate(entry.path, size)
                    self._reserved[entry.name] = size


def metric_files() -> MetricFiles:
    """Return the files of this process's SGLang."""
    folder = os.environ.get(VARIABLE)
    return MetricFiles(Path(folder) if folder else None)


def _allocate(path: str, size: int) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)
