"""How many processes the kernel has killed for want of memory, in this process's control group."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
COUNTER = "oom_kill"


def count_oom_kills() -> int:
    """Return the count since the group was made, or of the whole machine where no group tells.

    0 where the kernel does not tell at all.
    """
    for file in (*_group_files(), Path("/proc/vmstat")):
        with suppress(OSError, ValueError):
            fields = dict(line.split() for line in file.read_text().splitlines())
            return int(fields[COUNTER]) if COUNTER in fields else 0
    return 0


def _group_files() -> Iterator[Path]:
    """Where a control group counts, of version 2 and of version 1. In a container the path may be
    that of the host, while the container's own group is what is mounted."""
    with suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield CONTROL_GROUPS / path.lstrip("/") / "memory.events"
                yield CONTROL_GROUPS / "memory.events"
            elif "memory" in controllers.split(","):
                yield CONTROL_GROUPS / "memory" / path.lstrip("/") / "memory.oom_control"
                yield CONTROL_GROUPS / "memory" / "memory.oom_control"
