"""Has grammars checked before the thinker meets them: by a process of its own, each once."""

import asyncio
import time
from contextlib import aclosing
from hashlib import blake2b

from sglang_omni.admission.policy import Capacity
from sglang_omni.admission.queue import AdmissionQueue, QueueRules
from sglang_omni.caching.lru_cache import LruCache
from sglang_omni.caching.single_flight import SingleFlight
from sglang_omni.engines.grammar_checker.contract import (
    CheckRequest,
    GrammarSettings,
    Verdict,
    check_request,
)
from sglang_omni.engines.runtime.process import Engine, EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.process_output import TO_TERMINAL, OutputRules
from sglang_omni.engines.thinker.contract import SamplingParams
from sglang_omni.observability.trace import stage
from sglang_omni.protocol.errors import (
    SCHEMA_REFUSED,
    EngineFailed,
    EngineUnavailable,
    InvalidRequest,
)

FACTORY = "sglang_omni.engines.grammar_checker.worker:open_worker"
# One thread: each further one has an arena of its own, and grammars are compiled one at a time.
ENVIRONMENT = {
    "RAYON_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MALLOC_ARENA_MAX": "1",
}
# It starts in a second. A longer pause would let one bad schema after the other shut it.
LONGEST_RESTART_DELAY_S = 1.0
# On the clock; what counts is the time on a core, which ends the process by itself.
STEP_DEADLINE_S = 20.0
READY_DEADLINE_S = 10.0
QUEUE = QueueRules(max_length=64)
MOST_VERDICTS = 1024
# A grammar that ended the process is refused unseen for so long: the fault may have been another's.
FATAL_VERDICT_S = 60.0
FATAL = Verdict("takes more time or memory to compile than a grammar may; make it simpler")
_LOOK_S = 0.05


def checker_spec(settings: GrammarSettings, output: OutputRules = TO_TERMINAL) -> ProcessSpec:
    """The process that checks grammars."""
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
        max_restart_delay_s=LONGEST_RESTART_DELAY_S,
        output=output,
    )


class VerdictCache:
    """The latest verdicts, by what was checked. Owned by the event loop."""

    def __init__(self, most: int = MOST_VERDICTS) -> None:
        self._verdicts: LruCache[bytes, tuple[Verdict, float | None]] = LruCache(most)

    def find(self, key: bytes) -> Verdict | None:
        """Return the verdict, None if there is none, or none any more."""
        verdict, ends_at = self._verdicts.get(key) or (None, None)
        if ends_at is not None and time.monotonic() >= ends_at:
            self._verdicts.pop(key)
            return None
        return verdict

    def keep(self, key: bytes, verdict: Verdict) -> None:
        """Keep a verdict in place of the one that was asked for least recently."""
        ends_at = time.monotonic() + FATAL_VERDICT_S if verdict is FATAL else None
        self._verdicts.put(key, (verdict, ends_at))


class GrammarChecker:
    """Checks one grammar at a time, so that one which ends the process is known."""

    def __init__(self, settings: GrammarSettings, output: OutputRules = TO_TERMINAL) -> None:
        """Nothing is started."""
        self.process = EngineProcess(checker_spec(settings, output))
        self._verdicts = VerdictCache()
        self._queue = AdmissionQueue("grammar checker", lambda: Capacity(slots=1), QUEUE)
        self._flights: SingleFlight[bytes, Verdict] = SingleFlight()
        self._is_stopping = False

    async def start(self) -> None:
        """Start the process. Raises `StartupError`."""
        await self.process.start()

    async def stop(self, deadline_s: float = 2.0) -> None:
        """End the process, and fail what waits for it."""
        self._is_stopping = True
        await self.process.stop(deadline_s)

    async def check(self, sampling: SamplingParams, tenant: str | None = None) -> None:
        """Check what an answer is to be held to, if it is held to anything; `tenant` asks.

        Raises `InvalidRequest`, naming the field, for what cannot be compiled within the time and
        memory that one may take; `Overloaded` where too many wait, `EngineUnavailable` where the
        process does not come back.
        """
        asked = check_request(sampling)
        if asked is None:
            return
        with stage("grammar"):
            verdict = await self._judge(asked, tenant)
        if verdict.reason is not None:
            field = sampling.grammar.field if sampling.grammar else "response_format"
            error = InvalidRequest(f"{field}: the schema: {verdict.reason}", param=field)
            error.reason = SCHEMA_REFUSED
            raise error

    async def _judge(self, asked: CheckRequest, tenant: str | None) -> Verdict:
        key = blake2b(asked.text.encode(), person=asked.kind.encode()).digest()
        if (known := self._verdicts.find(key)) is not None:
            return known
        return await self._flights.run(key, lambda: self._ask(key, asked, tenant))

    async def _ask(self, key: bytes, asked: CheckRequest, tenant: str | None) -> Verdict:
        async with self._queue.admit(tenant, "normal"):
            # Cancelling a check in the process would make it unclear which check ended the process.
            self._flights.keep_running(key)
            verdict = await self._run(asked)
        self._verdicts.keep(key, verdict)
        return verdict

    async def _run(self, asked: CheckRequest) -> Verdict:
        ends_at = time.monotonic() + READY_DEADLINE_S
        while True:
            try:
                return await first_output(self.process, asked)
            except EngineFailed:
                return FATAL
            except EngineUnavailable:
                # It comes back from the last one; a process that is ready again does not say so.
                if self._is_stopping or time.monotonic() >= ends_at:
                    raise
                await asyncio.sleep(_LOOK_S)


async def first_output(engine: Engine, asked: CheckRequest) -> Verdict:
    """Return the one output of a check."""
    async with aclosing(engine.submit(asked)) as outputs:
        verdict: Verdict = await anext(outputs)
    return verdict
