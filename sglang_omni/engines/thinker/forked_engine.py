"""SGLang's engine with processes that are forks of the engine's own, for a CPU.

SGLang spawns its processes, and each imports SGLang anew: that takes 16 s of a core and a gigabyte
of memory for each of two or more. A fork has both already. It has the one thread that called it:
nothing here may compute with several threads before, or wait for another thread after.
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
    """Undo in a fork what holds in the engine's process alone."""
    gc.enable()
    send_reports_to_engine()


class ForkedEngine(Engine):
    """Fork the schedulers and the detokenizer. CUDA must not be initialized."""

    run_scheduler_process_func = staticmethod(_run_scheduler)
    run_detokenizer_process_func = staticmethod(_run_detokenizer)

    @classmethod
    def _launch_scheduler_processes(cls, *args: Any, **kwargs: Any) -> Any:
        # SGLang has set "spawn" just before.
        multiprocessing.set_start_method("fork", force=True)
        # A collection would write to every object, and so copy the memory that forks share.
        gc.freeze()
        return super()._launch_scheduler_processes(*args, **kwargs)
