"""Memory of a process with all that it has started."""

import psutil


def measure_tree_bytes(pid: int) -> int:
    """Return the memory of a process and its descendants, each shared page counted once in all.

    It is the sum of their proportional set sizes, in bytes. Raises `psutil.NoSuchProcess` if the
    process itself is gone; descendants that end meanwhile are left out.
    """
    root = psutil.Process(pid)
    return sum(map(_measure_bytes, (root, *root.children(recursive=True))))


def _measure_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0
