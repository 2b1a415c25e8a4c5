"""Read files into the kernel's page cache, ahead of the processes that map them."""

import logging
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

LOGGER = logging.getLogger(__name__)

READERS = 4
"""Threads, so that the disk has requests of several files at once."""
CHUNK_BYTES = 64 << 20
PROCESS_BYTES = 16 << 30
"""Memory that the processes of a server may take besides."""
MEMORY_INFO = Path("/proc/meminfo")
# Of control groups of version 2 and 1, as a container sees its own.
MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def prefetch_files(paths: Sequence[Path], available_bytes: int) -> list[threading.Thread]:
    """Start to read files, in their order, and return the threads that do so.

    Nothing is read where the files would not stay in memory until they are used.
    """
    num_bytes = sum(path.stat().st_size for path in paths)
    if num_bytes + PROCESS_BYTES > available_bytes:
        LOGGER.debug("%.1f GB of weights are not read ahead: memory is small", num_bytes / 1e9)
        return []
    waiting: SimpleQueue[Path] = SimpleQueue()
    for path in paths:
        waiting.put(path)
    threads = [
        threading.Thread(target=_read_waiting, args=(waiting,), name="prefetch", daemon=True)
        for _ in range(min(READERS, len(paths)))
    ]
    for thread in threads:
        thread.start()
    return threads


def _read_waiting(waiting: "SimpleQueue[Path]") -> None:
    with suppress(Empty):
        while True:
            path = waiting.get_nowait()
            try:
                read_into_page_cache(path)
            except OSError as error:
                # The engine that needs the file reports what is wrong with it.
                LOGGER.warning("%s is not read ahead: %s", path, error)


def read_into_page_cache(path: Path) -> None:
    """Read a file and copy it nowhere. Raises `OSError`."""
    with path.open("rb") as source, Path(os.devnull).open("wb") as sink:
        offset = 0
        while sent := os.sendfile(sink.fileno(), source.fileno(), offset, CHUNK_BYTES):
            offset += sent


def read_available_bytes(
    memory_info: Path = MEMORY_INFO, limits: Iterable[Path] = MEMORY_LIMITS
) -> int:
    """Return the memory of the machine that is free or can be freed, within the container's limit.

    Returns 0 where the machine does not say.
    """
    found = []
    for path in limits:
        with suppress(OSError, ValueError):  # There is none, or it is "max".
            found.append(int(path.read_text()))
    with suppress(OSError):
        for line in memory_info.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return min([int(value.split()[0]) * 1024, *found])
    return 0
