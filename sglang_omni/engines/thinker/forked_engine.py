"""SGLang's engine for a CPU, whose processes are forks of the engine's own process.

SGLang spawns its processes: a scheduler for each rank and a detokenizer. Each of them imports
SGLang anew, which takes 16 s of a core and a gigabyte of memory. A fork has the imports and shares
their memory. Of the threads it has only the one that forked, so the engine's process must not have
run PyTorch operations on several threads before: the fork would wait for those threads.
"""

import gc
import multiprocessing
from typing import Any

from sglang.srt.entrypoints.engine import Engine
from sglang.srt.managers.detokenizer_manager import run_detokenizer_process
from sglang.srt.managers.scheduler import run_scheduler_process

from sglang_omni.engines.thinker.start_reports import send_reports_to_engine


def _run_scheduler(*args: Any) -> None:
    _leave_engine()
    run_scheduler_process(*args)


def _run_detokenizer(*args: Any) -> None:
    _leave_engine()
    run_detokenizer_process(*args)


def _leave_engine() -> None:
    """Undo in a fork what holds only for the engine's process."""
    # The engine's process does not collect garbage during its start.
    gc.enable()
    send_reports_to_engine()


class ForkedEngine(Engine):
    """Fork the schedulers and the detokenizer instead of spawning them.

    CUDA must not be initialized in this process: it does not survive a fork.
    """

    run_scheduler_process_func = staticmethod(_run_scheduler)
    run_detokenizer_process_func = staticmethod(_run_detokenizer)

    @classmethod
    def _launch_scheduler_processes(cls, *args: Any, **kwargs: Any) -> Any:
        # SGLang means this method to be overridden. It has just set the start method to "spawn".
        multiprocessing.set_start_method("fork", force=True)
        # A garbage collection writes to every object that it visits, which copies shared memory.
        gc.freeze()
        return super()._launch_scheduler_processes(*args, **kwargs)
