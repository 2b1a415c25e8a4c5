"""The number of processes that the kernel's OOM killer has ended in this process's cgroup."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
COUNTER = "oom_kill"


def count_oom_kills() -> int:
    """Return the number of OOM kills since the cgroup was created.

    If no cgroup reports it, the count of the whole machine is returned, or 0 if there is none.
    """
    for file in (*_group_files(), Path("/proc/vmstat")):
        with suppress(OSError, ValueError):
            fields = dict(line.split() for line in file.read_text().splitlines())
            return int(fields[COUNTER]) if COUNTER in fields else 0
    return 0


def _group_files() -> Iterator[Path]:
    """Yield the files with the counts of this process's cgroup, for cgroup versions 2 and 1.

    In a container the path may be the host's, while the container's own cgroup is mounted at the
    root, so both are tried.
    """
    with suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield CONTROL_GROUPS / path.lstrip("/") / "memory.events"
                yield CONTROL_GROUPS / "memory.events"
            elif "memory" in controllers.split(","):
                yield CONTROL_GROUPS / "memory" / path.lstrip("/") / "memory.oom_control"
                yield CONTROL_GROUPS / "memory" / "memory.oom_control"
