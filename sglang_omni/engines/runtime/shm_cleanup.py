"""Named shared memory that a killed process group would leave behind.

Memory of our own has no name (`shared.py`), but libraries give theirs one: SGLang its load
snapshots and message queues, NCCL its rings, Python its semaphores. A name outlives a process that
is killed, and its megabytes with it, until somebody unlinks it. Which names were a group's can
only be seen while the group lives, from what its processes have mapped.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

FOLDER = Path("/dev/shm")


def group_members(pgid: int) -> Iterator[int]:
    """The living processes of a process group, zombies left out.

    Signal 0 to the group would not tell: its orphans stay zombies until process 1 reaps them, and
    in a container process 1 may never do so.
    """
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                stat = Path(f"/proc/{entry}/stat").read_text(errors="replace")
                state, _, group, *_ = stat.rpartition(")")[2].split()
                if int(group) == pgid and state != "Z":
                    yield int(entry)


def mapped_by(pgid: int) -> set[int]:
    """Inodes of the shared memory that a group's processes have mapped.

    Numbers, not names: a semaphore is mapped before it gets its name.
    """
    return {inode for pid in group_members(pgid) for inode in _mapped(pid)}


def unlink(inodes: Iterable[int]) -> None:
    """Remove the names that lead to these inodes, where there are any left."""
    wanted = set(inodes)
    with suppress(OSError), os.scandir(FOLDER) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.inode() in wanted:
                    os.unlink(entry.path)


def _mapped(pid: int) -> Iterator[int]:
    with suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as lines:
        for line in lines:
            if f" {FOLDER}/" in line:
                # address, permissions, offset, device, inode, path
                yield int(line.split(maxsplit=5)[4])
