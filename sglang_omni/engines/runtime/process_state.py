"""The state of an operating-system process."""

from pathlib import Path


def is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped a process. A stop by a debugger does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # "PID (NAME) STATE ...": the name may contain any characters.
    return state.rpartition(")")[2].split()[0] == "T"
