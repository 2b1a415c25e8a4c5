"""The grammar checker's worker: it compiles one grammar at a time, in a process that may crash."""

import math
import os
import resource
from pathlib import Path

from llguidance import LLTokenizer
from tokenizers import Tokenizer

from sglang_omni.engines.grammar_checker.contract import (
    JSON_OPTIONS,
    CheckRequest,
    GrammarSettings,
    GrammarVerdict,
)
from sglang_omni.engines.grammar_checker.matcher import GrammarError, check_grammar
from sglang_omni.engines.runtime.background_priority import lower_priority
from sglang_omni.engines.runtime.worker import StepInput, StepResults


class GrammarWorker:
    """A `StepWorker` without batching: a step checks all arrivals, so no request is ever held."""

    info = None
    busy = False

    def __init__(self, tokenizer: LLTokenizer, cpu_seconds: int) -> None:
        self._tokenizer, self._cpu_seconds = tokenizer, cpu_seconds
        self._num_checked = self._num_errors = 0

    def step(self, work: StepInput) -> StepResults:
        """Check every arrival."""
        return [(request_id, self._check(request)) for request_id, request in work.arrivals]

    def counters(self) -> dict[str, float]:
        """Return totals since the start."""
        return {"checked": self._num_checked, "request_errors": self._num_errors}

    def close(self) -> None:
        """Do nothing: no state is held between steps."""

    def _check(self, request: CheckRequest) -> GrammarVerdict:
        _limit_cpu_time(self._cpu_seconds)
        self._num_checked += 1
        try:
            check_grammar(self._tokenizer, request.kind, request.text, JSON_OPTIONS)
        except GrammarError as error:
            self._num_errors += 1
            return GrammarVerdict(str(error))
        return GrammarVerdict()


def open_worker(settings: GrammarSettings) -> GrammarWorker:
    """Load the tokenizer, then limit the resources of this process permanently.

    Raises:
        OSError: The tokenizer cannot be read, or a limit cannot be set.
    """
    file = settings.checkpoint / "tokenizer.json"
    tokenizer = LLTokenizer(Tokenizer.from_file(str(file)).to_str())
    worker = GrammarWorker(tokenizer, settings.cpu_seconds)
    # The first compilation starts the library's threads, whose memory must not count.
    worker.step(StepInput(arrivals=(("warm-up", CheckRequest("json", '{"type": "object"}')),)))
    memory = _read_mapped_bytes() + settings.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lower_priority()
    _discard_output()
    return worker


def _limit_cpu_time(seconds: int) -> None:
    """Let the kernel end this process after this much more CPU time.

    Wall-clock time would depend on the load of the machine.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    limit = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def _read_mapped_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _discard_output() -> None:
    """Redirect stdout and stderr to /dev/null.

    A library that fails may print a user's schema, and the server logs the output of this process.
    """
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    os.close(devnull)
