"""Processes whose work can wait: for files and schemas of one client, nobody else should."""

import os

# On few cores a decoder would keep the event loop and the engines waiting, and with them everybody.
# Not SCHED_IDLE: on a busy machine a file would then never be done within its time.
NICENESS = 10


def yield_to_engines() -> None:
    """Let this process, for good, use what the event loop and the engines leave of the cores."""
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
