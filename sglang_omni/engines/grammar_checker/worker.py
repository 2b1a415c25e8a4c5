"""Compiles one grammar at a time, in a process that a hostile one may ruin."""

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
    Verdict,
)
from sglang_omni.engines.grammar_checker.matcher import GrammarError, check_grammar
from sglang_omni.engines.runtime.background_priority import lower_priority
from sglang_omni.engines.runtime.worker import StepInput, StepResults


class GrammarWorker:
    """A `StepWorker` without batching: a step checks what arrived, so nothing is ever held."""

    info = None
    busy = False

    def __init__(self, tokenizer: LLTokenizer, cpu_seconds: int) -> None:
        self._tokenizer, self._cpu_seconds = tokenizer, cpu_seconds
        self._checked = self._refused = 0

    def step(self, work: StepInput) -> StepResults:
        """Check every arrival."""
        return [(request_id, self._check(request)) for request_id, request in work.arrivals]

    def counters(self) -> dict[str, float]:
        """Totals since the start."""
        return {"checked": self._checked, "refused": self._refused}

    def close(self) -> None:
        """Nothing is held between steps."""

    def _check(self, request: CheckRequest) -> Verdict:
        _allow_seconds(self._cpu_seconds)
        self._checked += 1
        try:
            check_grammar(self._tokenizer, request.kind, request.text, JSON_OPTIONS)
        except GrammarError as error:
            self._refused += 1
            return Verdict(str(error))
        return Verdict()


def open_worker(settings: GrammarSettings) -> GrammarWorker:
    """Load the tokenizer, then confine this process for good. Raises `OSError`."""
    file = settings.checkpoint / "tokenizer.json"
    tokenizer = LLTokenizer(Tokenizer.from_file(str(file)).to_str())
    worker = GrammarWorker(tokenizer, settings.cpu_seconds)
    # What is compiled first starts the library's own threads, which have memory of their own.
    worker.step(StepInput(arrivals=(("warm-up", CheckRequest("json", '{"type": "object"}')),)))
    memory = _mapped_bytes() + settings.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lower_priority()
    _silence()
    return worker


def _allow_seconds(seconds: int) -> None:
    """End this process once it has used so many more seconds of a core. Time on the clock says
    little on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    limit = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def _mapped_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _silence() -> None:
    """Write nothing any more: what a library says as it fails may quote a user's schema, and all
    that this process writes is in the server's log."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
