"""Whether a process has been stopped."""

from pathlib import Path


def is_stopped(pid: int) -> bool:
    """Whether a signal stopped a process; a debugger that looks at it does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # "PID (NAME) STATE ...": the name may hold anything.
    return state.rpartition(")")[2].split()[0] == "T"
