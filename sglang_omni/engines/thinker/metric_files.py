"""Room on disk for the files that SGLang's processes keep their metrics in.

They map sparse files into memory and write to them. A page that the disk has no room for ends the
process by SIGBUS, so room is taken before it is needed.
"""

import multiprocessing
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# A file that is full is set to twice its size, within one request: its room is there before.
ROOM = 4
# What a process may begin to write at any time: the detokenizer counts its seconds once it has run
# for some. A file that is there already is used as it is.
KINDS = ("counter", "histogram")
FILE_BYTES = 1 << 16


class MetricFiles:
    """Takes `ROOM` times the room of each file in a folder, again whenever its owner sets its
    size. None has no folder. Files that processes have not begun yet are made for them, and files
    that processes of an earlier start left are not touched: nobody writes to them any more."""

    def __init__(self, folder: Path | None, processes: Sequence[int] = ()) -> None:
        """`processes` are the ids of SGLang's."""
        self._folder = folder
        self._reserved = {} if folder is None else _sizes_of_others(folder, processes)
        if folder is not None:
            for path in (folder / f"{kind}_{pid}.db" for kind in KINDS for pid in processes):
                # A full disk is no error here either.
                with suppress(OSError):
                    _make(path)

    def reserve(self) -> None:
        """Take room for every file that is new or has another size than it was left with. A full
        disk is no error: what was written so far has its room."""
        if self._folder is None:
            return
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                size = entry.stat().st_size
                if size != self._reserved.get(entry.name):
                    self._reserved[entry.name] = ROOM * size
                    _allocate(entry.path, ROOM * size)


def metric_files() -> MetricFiles:
    """Return the files of this process's SGLang."""
    folder = os.environ.get(VARIABLE)
    children = [child.pid for child in multiprocessing.active_children() if child.pid is not None]
    return MetricFiles(Path(folder) if folder else None, [os.getpid(), *children])


def _sizes_of_others(folder: Path, processes: Sequence[int]) -> dict[str, int]:
    """Return the sizes of the files in `folder` that are of none of `processes`, by name."""
    own = {str(pid) for pid in processes}
    return {
        file.name: file.stat().st_size
        for file in folder.glob("*.db")
        if file.stem.rpartition("_")[2] not in own
    }


def _make(path: Path) -> None:
    """Make a file of zeros, which is one without values; leave one that is there alone."""
    with suppress(FileExistsError), path.open("xb") as file:
        file.truncate(FILE_BYTES)


def _allocate(path: str, size: int) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)
