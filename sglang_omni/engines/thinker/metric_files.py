"""Disk space for the files in which SGLang's processes keep their Prometheus metrics.

The processes write to memory-mapped sparse files. If the disk has no space for a page, the process
dies of SIGBUS, so the space is allocated in advance.
"""

import multiprocessing
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MULTIPROC_DIR_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# A full file doubles its size within one request, so the space is allocated before that.
RESERVE_FACTOR = 4
# Files that a process may create at any time: the detokenizer counts its seconds only after some.
# An existing file is used as it is.
PREALLOCATED_KINDS = ("counter", "histogram")
INITIAL_FILE_BYTES = 1 << 16


class MetricFiles:
    """Allocates `RESERVE_FACTOR` times the size of each metric file in a folder.

    The space is allocated again whenever a process changes the size. Files that processes have not
    created yet are created for them. Files that processes of an earlier start left are not touched,
    because no process writes to them any more.
    """

    def __init__(self, folder: Path | None, processes: Sequence[int] = ()) -> None:
        """Create the files of SGLang's `processes` (ids). Without a folder nothing is done."""
        self._folder = folder
        self._reserved = {} if folder is None else _read_other_sizes(folder, processes)
        if folder is not None:
            for path in (
                folder / f"{kind}_{pid}.db" for kind in PREALLOCATED_KINDS for pid in processes
            ):
                # A full disk is not an error here either.
                with suppress(OSError):
                    _create(path)

    def reserve(self) -> None:
        """Allocate space for every file that is new or has changed its size.

        A full disk is not an error: what has been written so far has its space.
        """
        if self._folder is None:
            return
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                size = entry.stat().st_size
                if size != self._reserved.get(entry.name):
                    self._reserved[entry.name] = RESERVE_FACTOR * size
                    _allocate(entry.path, RESERVE_FACTOR * size)


def open_metric_files() -> MetricFiles:
    """Return the metric files of this process and its children."""
    folder = os.environ.get(MULTIPROC_DIR_VARIABLE)
    children = [child.pid for child in multiprocessing.active_children() if child.pid is not None]
    return MetricFiles(Path(folder) if folder else None, [os.getpid(), *children])


def _read_other_sizes(folder: Path, processes: Sequence[int]) -> dict[str, int]:
    """Return the sizes, by name, of the files in `folder` that do not belong to `processes`."""
    own_pids = {str(pid) for pid in processes}
    return {
        file.name: file.stat().st_size
        for file in folder.glob("*.db")
        if file.stem.rpartition("_")[2] not in own_pids
    }


def _create(path: Path) -> None:
    """Create a file of zeros, which holds no values, unless it exists."""
    with suppress(FileExistsError), path.open("xb") as file:
        file.truncate(INITIAL_FILE_BYTES)


def _allocate(path: str, size: int) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)
