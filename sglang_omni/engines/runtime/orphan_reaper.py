"""Orphan reaping: an engine process and its children never outlive the server.

There is one mechanism for each generation. The kernel kills the engine process when its parent dies
(`PR_SET_PDEATHSIG`). The engine cannot end its own children then, such as SGLang's schedulers.
So it first forks an orphan reaper, which waits for the engine's death, kills its process group and
unlinks its shared memory.
"""

import ctypes
import os
import signal
import struct
from contextlib import suppress

from sglang_omni.engines.runtime.shm_cleanup import find_mapped_inodes, unlink_inodes

_PR_SET_PDEATHSIG = 1
# Eight bytes each; a pipe buffers 64 KiB without a reader.
_MAX_REPORTED_INODES = 4096
# How often the reaper scans for shared memory, which is impossible once the engine is dead. Most of
# it exists when the engine is ready, and the engine reports it then.
_SCAN_INTERVAL_S = 30.0


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent `parent` is gone, or at once if it is."""
    _set_parent_death_signal(signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def fork_orphan_reaper() -> int:
    """Fork a process that kills this process's group once this process, its leader, is gone.

    Call it before any thread starts: a fork is safe only then.

    Returns:
        The pipe that `report_shared_memory` writes to.
    """
    engine = os.getpid()
    read_end, write_end = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    reaper = os.fork()
    if reaper == 0:
        try:
            _run_reaper(engine, read_end)
        finally:
            os._exit(1)  # Never return into the engine's code.
    # The reaper leaves the group, so that killing the group does not stop the cleanup. The engine
    # moves it: on busy cores the engine may be killed before the reaper has run at all.
    os.setpgid(reaper, reaper)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    os.close(read_end)
    return write_end


def report_shared_memory(reaper_pipe: int) -> None:
    """Tell the orphan reaper which shared memory this group has mapped by now."""
    inodes = list(find_mapped_inodes(os.getpgrp()))[:_MAX_REPORTED_INODES]
    os.write(reaper_pipe, struct.pack(f"{len(inodes)}Q", *inodes))


def kill_group() -> None:
    """Kill this process and its group. The orphan reaper then cleans up and ends."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _run_reaper(engine: int, read_end: int) -> None:
    _set_parent_death_signal(signal.SIGTERM)
    shared: set[int] = set()
    # SIGTERM is blocked, so it cannot arrive between `prctl` and the wait.
    while os.getppid() == engine and not signal.sigtimedwait({signal.SIGTERM}, _SCAN_INTERVAL_S):
        shared |= find_mapped_inodes(engine)
    with suppress(ProcessLookupError):  # The group is already gone.
        os.killpg(engine, signal.SIGKILL)
    unlink_inodes(shared | _read_inodes(read_end))
    os._exit(0)


def _read_inodes(read_end: int) -> set[int]:
    """Read the reported inodes, without blocking: a child may hold the write end open."""
    os.set_blocking(read_end, False)
    with suppress(BlockingIOError):
        data = os.read(read_end, 8 * _MAX_REPORTED_INODES)
        return {inode for (inode,) in struct.iter_unpack("Q", data)}
    return set()


def _set_parent_death_signal(number: signal.Signals) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(number)) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
