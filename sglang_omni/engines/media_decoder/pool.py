"""The intake: several decoding processes, and one way to have a medium decoded by any of them."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing

from sglang_omni.admission.memory import MediaMemory
from sglang_omni.engines.media_decoder.contract import (
    Decoded,
    DecodeRequest,
    MediaDecoderSettings,
    SharedFile,
)
from sglang_omni.engines.media_decoder.queue import DecoderQueue
from sglang_omni.engines.runtime.process import EngineHealth, EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.process_output import TO_TERMINAL, OutputRules
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.media.limits import Kind, MediaLimits, PixelBudget
from sglang_omni.protocol.errors import (
    EngineFailed,
    EngineUnavailable,
    InvalidRequest,
    OmniError,
)

FACTORY = "sglang_omni.engines.media_decoder.worker:open_worker"
# One thread a library. 24 MB, what a picture of three megapixels takes, are kept from one file to
# the next: to clear and map them anew took half of the time of a picture of one. What is larger
# comes straight from the kernel and goes back to it.
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(12 << 20),
    "MALLOC_TOP_PAD_": str(24 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(28 << 20),
}
# A decoder starts in a second. A longer pause would let a few bad files shut the intake.
LONGEST_RESTART_DELAY_S = 2.0
# A decoder that has not come back for so long will not by itself.
MAX_RESTART_S = 30.0
SILENCE_MARGIN_S = 1.0
# Decoders that one file may cost.
MOST_DEATHS = 2
# A larger file is not sent to its decoder, but put where that can read it.
SENT_BYTES = 256 << 10
_LOOK_S = 0.05


class _Died(EngineFailed):
    """A decoder ended while it had a request."""


def decoder_spec(
    name: str, settings: MediaDecoderSettings, output: OutputRules = TO_TERMINAL
) -> ProcessSpec:
    """One decoding process of the intake."""
    return ProcessSpec(
        name,
        FACTORY,
        settings,
        ENVIRONMENT,
        start_deadline_s=60.0,
        step_deadline_s=settings.limits.decode_seconds,
        # Later than its deadline: silence may have begun before the file.
        silence_deadline_s=min(
            ProcessSpec.silence_deadline_s, settings.limits.decode_seconds + SILENCE_MARGIN_S
        ),
        # A file may take that long: a decoder at work is not unwell.
        unready_after_s=settings.limits.decode_seconds,
        max_in_flight=1,
        max_restart_delay_s=LONGEST_RESTART_DELAY_S,
        output=output,
    )


def is_usable(health: EngineHealth, now: float) -> bool:
    """Return whether a decoder decodes, or will in a moment. `now` is in s since the epoch."""
    if health.state == "restarting":
        return now - health.since < MAX_RESTART_S
    return health.state in ("ready", "unresponsive")


async def _to_send(file: bytes) -> bytes | SharedFile:
    return file if len(file) <= SENT_BYTES else await asyncio.to_thread(SharedFile.of, file)


class MediaDecoderPool:
    """Decodes media in processes that serve one request at a time, so that a file which kills its
    decoder, or keeps it for too long, fails alone.

    A request waits for the first decoder that is idle and ready; see `DecoderQueue`. What is
    decoded may hold `max_held_bytes` until it is encoded. A request whose caller has gone leaves
    the queue, but a decoder at work finishes, or runs into its deadline, before it is free: to
    kill it would cost more than most files do.
    """

    def __init__(
        self,
        settings: MediaDecoderSettings,
        *,
        processes: int = 2,
        most_waiting: int = 64,
        max_held_bytes: int = 2 << 30,
        output: OutputRules = TO_TERMINAL,
    ) -> None:
        self._limits: MediaLimits = settings.limits
        self.memory = MediaMemory(max_held_bytes)
        names = [f"intake-{number}" for number in range(processes)]
        self._engines = [EngineProcess(decoder_spec(name, settings, output)) for name in names]
        self._busy: set[EngineProcess] = set()
        # Videos take seconds: one decoder stays free of them, for pictures and clips.
        self._queue: DecoderQueue[EngineProcess] = DecoderQueue(
            most_waiting, max_videos=max(1, processes - 1)
        )
        # Set while somebody waits.
        self._wanted = asyncio.Event()
        self._jobs: set[asyncio.Task[Decoded]] = set()
        self._matcher: asyncio.Task[None] | None = None

    @property
    def processes(self) -> dict[str, EngineProcess]:
        """The decoding processes, by name, to look at."""
        return {engine.spec.name: engine for engine in self._engines}

    @property
    def can_decode(self) -> bool:
        """Whether a file that comes now will be decoded: one decoder lives, or restarts and has
        not failed to for long. A bad file must not take the server out of service: a proxy would
        send it to the next one."""
        return any(is_usable(engine.health, time.time()) for engine in self._engines)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a decoder."""
        return len(self._queue)

    @property
    def in_flight(self) -> int:
        """The number of decoders at work, for whomever."""
        return len(self._busy)

    async def start(self) -> None:
        """Start every process and wait for all. Raises `StartupError`; none is left then."""
        try:
            async with asyncio.TaskGroup() as group:
                for engine in self._engines:
                    group.create_task(engine.start())
        except BaseExceptionGroup as failures:
            await self.stop()
            raise failures.exceptions[0] from failures
        except BaseException:
            await self.stop()
            raise
        self._matcher = asyncio.create_task(self._keep_matching())

    async def stop(self, deadline_s: float = 2.0) -> None:
        """Fail what waits or works with `EngineUnavailable`, and end every process."""
        if self._matcher is not None:
            self._matcher.cancel()
            await asyncio.wait({self._matcher})
            self._matcher = None
        self._queue.fail(EngineUnavailable("the intake is stopping"))
        await asyncio.gather(*(engine.stop(deadline_s) for engine in self._engines))

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None = None,
        sample_rate: int | None = None,
        most_seconds: float | None = None,
        tenant: str | None = None,
    ) -> tuple[Decoded, SharedArray]:
        """Decode one medium; see `DecodeRequest`. The array's memory goes with the last reference.

        Raises `InvalidRequest` for whatever is wrong with the files, also when they kill their
        decoder or keep it beyond its deadline; `Overloaded` when too many wait already, and
        `EngineUnavailable` when the intake is not running.
        """
        self._check(kind, files)
        sent = tuple([await _to_send(file) for file in files])
        request = DecodeRequest(kind, sent, SharedArray(), image, sample_rate, most_seconds)
        decoded = await self._decode(request, tenant)
        self.memory.track(tenant, request.array, decoded.layout.nbytes)
        return decoded, request.array

    def _check(self, kind: Kind, files: Sequence[bytes]) -> None:
        if not files or not all(files):
            raise InvalidRequest(f"the {kind} is empty")
        if len(files) > 1 and kind != "video":
            raise InvalidRequest(f"a medium of kind {kind} is one file, not {len(files)}")
        if sum(map(len, files)) > self._limits.file_bytes:
            raise InvalidRequest(f"the {kind} has more than {self._limits.file_bytes} bytes")

    async def _decode(self, request: DecodeRequest, tenant: str | None) -> Decoded:
        """Run the request, again if its decoder dies: that may have been nobody's fault, or that of
        another file. What kills two is at fault itself."""
        deaths = 0
        while self._matcher is not None:
            engine = await self._take(request.kind, tenant)
            job = asyncio.create_task(self._run(engine, request))
            self._jobs.add(job)
            job.add_done_callback(self._forget)
            try:
                # Whoever stops waiting must not stop the job; see the class.
                return await asyncio.shield(job)
            except EngineUnavailable:
                continue  # It died at rest, before it had the request.
            except _Died:
                deaths += 1
                if deaths == MOST_DEATHS:
                    raise InvalidRequest(
                        f"the {request.kind} cannot be decoded: it made the decoder fail"
                    ) from None
        raise EngineUnavailable("the intake is not running")

    async def _run(self, engine: EngineProcess, request: DecodeRequest) -> Decoded:
        began = time.monotonic()
        try:
            async with aclosing(engine.submit(request)) as outputs:
                decoded: Decoded = await anext(outputs)
                return decoded
        except EngineFailed as error:
            raise self._verdict(engine, request.kind, time.monotonic() - began, error) from error
        finally:
            self._free(engine)

    def _verdict(
        self, engine: EngineProcess, kind: Kind, seconds: float, error: EngineFailed
    ) -> OmniError:
        """What the caller learns of a failure; a process that lives has told what went wrong."""
        if engine.health.state == "ready":
            return error
        if seconds >= self._limits.decode_seconds:
            limit = self._limits.decode_seconds
            return InvalidRequest(f"the {kind} could not be decoded within {limit:g} s")
        return _Died(error.message)

    def _forget(self, job: asyncio.Task[Decoded]) -> None:
        self._jobs.discard(job)
        if not job.cancelled():
            job.exception()  # Its caller may be gone; then nobody else looks at it.

    async def _take(self, kind: Kind, tenant: str | None) -> EngineProcess:
        """Wait for a process of one's own. Raises `Overloaded`."""
        with self._queue.join(kind, tenant) as turn:
            self._wanted.set()
            self._match()
            try:
                return await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled() and turn.exception() is None:
                    self._free(turn.result())
                raise

    def _free(self, engine: EngineProcess) -> None:
        self._busy.discard(engine)
        self._queue.leave(engine)
        self._match()

    def _match(self) -> None:
        """Give idle processes to whoever waits, by turns."""
        for engine in self._engines:
            idle = engine not in self._busy and engine.health.state == "ready"
            if idle and self._queue.assign(engine):
                self._busy.add(engine)
        self._queue.refuse_excess()

    async def _keep_matching(self) -> None:
        # A process that is ready again does not say so; it took a second, what is a look more.
        while True:
            await self._wanted.wait()
            await asyncio.sleep(_LOOK_S)
            self._match()
            if not self._queue:
                self._wanted.clear()
