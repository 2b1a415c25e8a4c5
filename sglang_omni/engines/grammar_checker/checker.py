"""Checks grammars in a separate process before they reach the thinker."""

import asyncio
import time
from contextlib import aclosing
from hashlib import blake2b

from sglang_omni.caching.lru_cache import LruCache
from sglang_omni.caching.single_flight import SingleFlight
from sglang_omni.engines.grammar_checker.contract import (
    CheckRequest,
    GrammarSettings,
    GrammarVerdict,
    build_check_request,
)
from sglang_omni.engines.runtime.process import Engine, EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.process_output import TO_TERMINAL, OutputRules
from sglang_omni.observability.trace import stage
from sglang_omni.protocol.errors import (
    SCHEMA_REFUSED,
    EngineFailed,
    EngineUnavailable,
    InvalidRequest,
)
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.queueing.policy import Capacity
from sglang_omni.queueing.queue import AdmissionQueue, QueueRules

FACTORY = "sglang_omni.engines.grammar_checker.worker:open_worker"
# One thread, because each thread has its own memory arena and one grammar is compiled at a time.
ENVIRONMENT = {
    "RAYON_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MALLOC_ARENA_MAX": "1",
}
# The process starts in a second. With a longer pause, bad schemas would keep it down.
MAX_RESTART_DELAY_S = 1.0
# Wall-clock time. The process ends itself earlier, by its limit of CPU time.
STEP_DEADLINE_S = 20.0
READY_DEADLINE_S = 10.0
QUEUE = QueueRules(max_length=64)
MAX_CACHED_VERDICTS = 1024
# How long a grammar that crashed the process is rejected without a check. Not forever, because the
# crash may have had another cause.
CRASH_VERDICT_TTL_S = 60.0
CRASH_VERDICT = GrammarVerdict("takes too much time or memory to compile; simplify it")
_POLL_S = 0.05


def build_process_spec(settings: GrammarSettings, output: OutputRules = TO_TERMINAL) -> ProcessSpec:
    """Return the spec of the process that checks grammars."""
    return ProcessSpec(
        "grammar",
        FACTORY,
        settings,
        ENVIRONMENT,
        start_deadline_s=60.0,
        step_deadline_s=STEP_DEADLINE_S,
        silence_deadline_s=STEP_DEADLINE_S,
        unready_after_s=STEP_DEADLINE_S,
        max_in_flight=1,
        max_restart_delay_s=MAX_RESTART_DELAY_S,
        output=output,
    )


class VerdictCache:
    """An LRU cache of verdicts by grammar. Used on the event loop only."""

    def __init__(self, max_verdicts: int = MAX_CACHED_VERDICTS) -> None:
        self._verdicts: LruCache[bytes, tuple[GrammarVerdict, float | None]]
        self._verdicts = LruCache(max_verdicts)

    def get(self, key: bytes) -> GrammarVerdict | None:
        """Return the verdict, or None if there is none or it has expired."""
        verdict, deadline = self._verdicts.get(key) or (None, None)
        if deadline is not None and time.monotonic() >= deadline:
            self._verdicts.pop(key)
            return None
        return verdict

    def put(self, key: bytes, verdict: GrammarVerdict) -> None:
        """Store a verdict, and evict the least recently used one if the cache is full."""
        deadline = time.monotonic() + CRASH_VERDICT_TTL_S if verdict is CRASH_VERDICT else None
        self._verdicts.put(key, (verdict, deadline))


class GrammarChecker:
    """Checks one grammar at a time, so that a grammar that crashes the process is known."""

    def __init__(self, settings: GrammarSettings, output: OutputRules = TO_TERMINAL) -> None:
        """Create the checker without starting its process."""
        self.process = EngineProcess(build_process_spec(settings, output))
        self._verdicts = VerdictCache()
        self._queue = AdmissionQueue("grammar checker", lambda: Capacity(slots=1), QUEUE)
        self._flights: SingleFlight[bytes, GrammarVerdict] = SingleFlight()
        self._is_stopping = False

    async def start(self) -> None:
        """Start the process.

        Raises:
            StartupError: The process cannot start.
        """
        await self.process.start()

    async def stop(self, deadline_s: float = 2.0) -> None:
        """Stop the process and fail the pending checks."""
        self._is_stopping = True
        await self.process.stop(deadline_s)

    async def check(self, sampling: SamplingParams, tenant: str | None = None) -> None:
        """Check the JSON schema or grammar of an answer, if it has one, for a tenant.

        Raises:
            InvalidRequest: It cannot be compiled within the time and memory limits. The error names
                the request field.
            Overloaded: Too many checks wait.
            EngineUnavailable: The process does not restart in time.
        """
        request = build_check_request(sampling)
        if request is None:
            return
        with stage("grammar"):
            verdict = await self._get_verdict(request, tenant)
        if verdict.reason is not None:
            field = sampling.grammar.field if sampling.grammar else "response_format"
            error = InvalidRequest(f"{field}: the schema: {verdict.reason}", param=field)
            error.reason = SCHEMA_REFUSED
            raise error

    async def _get_verdict(self, request: CheckRequest, tenant: str | None) -> GrammarVerdict:
        key = blake2b(request.text.encode(), person=request.kind.encode()).digest()
        if (known := self._verdicts.get(key)) is not None:
            return known
        return await self._flights.run(key, lambda: self._request_verdict(key, request, tenant))

    async def _request_verdict(
        self, key: bytes, request: CheckRequest, tenant: str | None
    ) -> GrammarVerdict:
        async with self._queue.admit(tenant, "normal"):
            # After a cancelled check a crash could not be attributed to its grammar.
            self._flights.keep_running(key)
            verdict = await self._check_when_ready(request)
        self._verdicts.put(key, verdict)
        return verdict

    async def _check_when_ready(self, request: CheckRequest) -> GrammarVerdict:
        deadline = time.monotonic() + READY_DEADLINE_S
        while True:
            try:
                return await request_verdict(self.process, request)
            except EngineFailed:
                return CRASH_VERDICT
            except EngineUnavailable:
                # It may be restarting. A process does not signal that it is ready again, so poll.
                if self._is_stopping or time.monotonic() >= deadline:
                    raise
                await asyncio.sleep(_POLL_S)


async def request_verdict(engine: Engine, request: CheckRequest) -> GrammarVerdict:
    """Submit a check and return its verdict."""
    async with aclosing(engine.submit(request)) as outputs:
        verdict: GrammarVerdict = await anext(outputs)
    return verdict
