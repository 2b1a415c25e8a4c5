"""An engine process and what it starts never outlive the server, however the server dies.

Two mechanisms of the Linux kernel, one for each generation. The engine process asks to be killed
when its parent dies. That gives it no chance to take its own children along (SGLang's schedulers,
for one), so before anything else it forks a guard that waits for the engine's own death, kills the
process group and removes the names of its shared memory.
"""

import ctypes
import os
import signal
import struct
from contextlib import suppress

from sglang_omni.engines.runtime.shm_cleanup import mapped_by, unlink

_PR_SET_PDEATHSIG = 1
# Eight bytes each; a pipe takes 64 KiB without a reader.
_MOST_TOLD = 4096
# How often the guard looks what shared memory there is; once the engine is dead it is too late.
# Most of it is there once the engine is ready, and then the guard is told of it.
_LOOK_S = 30.0


def die_with_parent(parent: int) -> None:
    """Be killed when process `parent`, which started this one, is gone; also if it already is."""
    _on_parent_death(signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def leave_guard(inherited: int) -> int:
    """Fork a guard that kills this process's group once this process, its leader, is gone; return
    the pipe that `tell` writes to.

    Call it first of all: a fork is safe only before there are threads. `inherited` is the engine's
    socket, which the guard closes lest it keep the connection alive.
    """
    engine = os.getpid()
    told, telling = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    guard = os.fork()
    if guard == 0:
        try:
            os.close(inherited)
            _guard(engine, told)
        finally:
            os._exit(1)  # Never back into the caller, who is the engine.
    # Out of the group, since whoever kills the group must not stop the cleaning up. Not by itself:
    # on busy cores the engine may be killed before its guard has run at all.
    os.setpgid(guard, guard)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    os.close(told)
    return telling


def tell(guard: int) -> None:
    """Let the guard know what shared memory this group has mapped by now."""
    inodes = list(mapped_by(os.getpgrp()))[:_MOST_TOLD]
    os.write(guard, struct.pack(f"{len(inodes)}Q", *inodes))


def kill_group() -> None:
    """Kill this process and everything it started; its guard cleans up and ends."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _guard(engine: int, told: int) -> None:
    _on_parent_death(signal.SIGTERM)
    shared: set[int] = set()
    # The signal is blocked, so it cannot come between the request for it and the wait.
    while os.getppid() == engine and not signal.sigtimedwait({signal.SIGTERM}, _LOOK_S):
        shared |= mapped_by(engine)
    with suppress(ProcessLookupError):  # It had nobody, or they went with it.
        os.killpg(engine, signal.SIGKILL)
    unlink(shared | _read(told))
    os._exit(0)


def _read(told: int) -> set[int]:
    """What the engine told; a child of it may hold the pipe open, so there may be no end."""
    os.set_blocking(told, False)
    with suppress(BlockingIOError):
        data = os.read(told, 8 * _MOST_TOLD)
        return {inode for (inode,) in struct.iter_unpack("Q", data)}
    return set()


def _on_parent_death(number: signal.Signals) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(number)) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
