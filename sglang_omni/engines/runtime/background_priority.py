"""A low CPU priority for processes that handle the files and schemas of single clients."""

import os

# On few cores a decoder would otherwise delay the event loop and the engines, and so every client.
# With SCHED_IDLE, a busy machine would never finish a file before its deadline.
NICENESS = 10


def lower_priority() -> None:
    """Lower the CPU priority of this process permanently, below the event loop and the engines."""
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
