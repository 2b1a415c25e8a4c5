"""Removal of named shared memory that a killed process group would leave behind.

Our own shared memory has no name (`shared_array.py`), but libraries use names: SGLang for load
snapshots and message queues, NCCL for its rings, Python for semaphores. A name, and its memory,
outlives a killed process until somebody unlinks it. Which names belong to a process group can only
be determined while the group lives, from what its processes have mapped.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

SHM_DIR = Path("/dev/shm")


def iter_group_pids(pgid: int) -> Iterator[int]:
    """Yield the ids of the living processes of a process group, without zombies.

    Signal 0 to the group cannot answer this: orphans stay zombies until process 1 reaps them, and
    in a container process 1 may never do so.
    """
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                stat = Path(f"/proc/{entry}/stat").read_text(errors="replace")
                state, _, group, *_ = stat.rpartition(")")[2].split()
                if int(group) == pgid and state != "Z":
                    yield int(entry)


def find_mapped_inodes(pgid: int) -> set[int]:
    """Return the inodes of the shared memory that a group's processes have mapped.

    Inodes rather than names, because a semaphore is mapped before it gets its name.
    """
    return {inode for pid in iter_group_pids(pgid) for inode in _iter_mapped_inodes(pid)}


def unlink_inodes(inodes: Iterable[int]) -> None:
    """Remove the names of these inodes that still exist."""
    targets = set(inodes)
    with suppress(OSError), os.scandir(SHM_DIR) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.inode() in targets:
                    os.unlink(entry.path)


def _iter_mapped_inodes(pid: int) -> Iterator[int]:
    with suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as lines:
        for line in lines:
            if f" {SHM_DIR}/" in line:
                # address, permissions, offset, device, inode, path
                yield int(line.split(maxsplit=5)[4])
