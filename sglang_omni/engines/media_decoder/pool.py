"""The pool of media decoder processes."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from sglang_omni.engines.media_decoder.contract import (
    Decoded,
    DecodeRequest,
    MediaDecoderSettings,
    RecordingRequest,
    SharedFile,
)
from sglang_omni.engines.media_decoder.memory import MediaMemory
from sglang_omni.engines.media_decoder.queue import DecoderQueue
from sglang_omni.engines.runtime.process import EngineHealth, EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.process_output import TO_TERMINAL, OutputRules
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.media.limits import NO_VIDEO_OPTIONS, Kind, MediaLimits, PixelBudget, VideoOptions
from sglang_omni.media.speech_spans import RecordingProgress
from sglang_omni.protocol.errors import (
    EngineFailed,
    EngineUnavailable,
    InvalidRequest,
    OmniError,
)

FACTORY = "sglang_omni.engines.media_decoder.worker:open_worker"
# One thread per library. malloc keeps 24 MB between files, which an image of three megapixels
# takes: mapping and clearing memory again took half of the time of an image of one megapixel.
# Larger blocks are mapped and unmapped directly.
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(12 << 20),
    "MALLOC_TOP_PAD_": str(24 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(28 << 20),
}
# A decoder starts in a second. With a longer pause, a few bad files would stop all decoders.
MAX_RESTART_DELAY_S = 2.0
# A decoder that restarts for longer counts as down.
MAX_RESTARTING_S = 30.0
SILENCE_MARGIN_S = 1.0
# How often a decoder may crash on the same request before the file is rejected.
MAX_DECODER_CRASHES = 2
# A larger file is passed in shared memory.
MAX_INLINE_BYTES = 256 << 10
_POLL_S = 0.05


class _DecoderCrashed(EngineFailed):
    """A decoder process ended while it processed a request."""


def build_process_spec(
    name: str, settings: MediaDecoderSettings, output: OutputRules = TO_TERMINAL
) -> ProcessSpec:
    """Return the spec of a decoder process."""
    return ProcessSpec(
        name,
        FACTORY,
        settings,
        ENVIRONMENT,
        start_deadline_s=60.0,
        step_deadline_s=settings.limits.decode_seconds,
        # Later than the step deadline, because heartbeats may be missing since before the file.
        silence_deadline_s=min(
            ProcessSpec.silence_deadline_s, settings.limits.decode_seconds + SILENCE_MARGIN_S
        ),
        # A file may take that long, so a busy decoder is not unresponsive before.
        unready_after_s=settings.limits.decode_seconds,
        max_in_flight=1,
        max_restart_delay_s=MAX_RESTART_DELAY_S,
        output=output,
    )


def is_usable(health: EngineHealth, now: float) -> bool:
    """Return whether a decoder is up or will be soon. `now` is in seconds since the epoch."""
    if health.state == "restarting":
        return now - health.since < MAX_RESTARTING_S
    return health.state in ("ready", "unresponsive")


def _build_crash_error(name: str) -> InvalidRequest:
    return InvalidRequest(f"the {name} cannot be decoded: it crashes the decoder")


async def _to_payload(file: bytes) -> bytes | SharedFile:
    return file if len(file) <= MAX_INLINE_BYTES else await asyncio.to_thread(SharedFile.of, file)


class MediaDecoderPool:
    """Decodes media in processes that serve one request at a time.

    So a file that crashes its decoder, or takes too long, fails alone. A request waits for the
    first decoder that is idle and ready; see `DecoderQueue`. Decoded media may use `max_held_bytes`
    until they are encoded. A cancelled request leaves the queue, but a busy decoder finishes, or
    reaches its deadline, before it is idle: killing it would cost more than most files.
    """

    def __init__(
        self,
        settings: MediaDecoderSettings,
        *,
        processes: int = 2,
        max_waiting: int = 64,
        max_held_bytes: int = 2 << 30,
        output: OutputRules = TO_TERMINAL,
        move: Callable[[ProcessSpec, int], ProcessSpec] | None = None,
    ) -> None:
        """Create the processes without starting them.

        `move` returns the spec of the process with this number at its place, None leaves all on
        this machine.
        """
        self._limits: MediaLimits = settings.limits
        self.memory = MediaMemory(max_held_bytes)
        names = [f"media_decoder-{number}" for number in range(processes)]
        specs = [build_process_spec(name, settings, output) for name in names]
        if move is not None:
            specs = [move(spec, number) for number, spec in enumerate(specs)]
        self._engines = [EngineProcess(spec) for spec in specs]
        self._busy: set[EngineProcess] = set()
        # Videos take seconds, so one decoder is kept for images and audio.
        self._queue: DecoderQueue[EngineProcess] = DecoderQueue(
            max_waiting, max_videos=max(1, processes - 1)
        )
        # Set while requests wait.
        self._has_waiting = asyncio.Event()
        self._jobs: set[asyncio.Task[Decoded]] = set()
        self._match_task: asyncio.Task[None] | None = None

    @property
    def processes(self) -> dict[str, EngineProcess]:
        """Return the decoder processes by name."""
        return {engine.spec.name: engine for engine in self._engines}

    @property
    def can_decode(self) -> bool:
        """Return whether at least one decoder is up or will be soon.

        A crash does not count at once: a bad file must not make the server unready, because a proxy
        would send the file to the next server.
        """
        return any(is_usable(engine.health, time.time()) for engine in self._engines)

    @property
    def num_waiting(self) -> int:
        """Return the number of requests that wait for a decoder."""
        return len(self._queue)

    @property
    def in_flight(self) -> int:
        """Return the number of busy decoders."""
        return len(self._busy)

    async def start(self) -> None:
        """Start every process and wait until all are ready.

        Raises:
            StartupError: A process failed to start. All others are stopped.
        """
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
        self._match_task = asyncio.create_task(self._match_periodically())

    async def stop(self, deadline_s: float = 2.0) -> None:
        """Fail all requests with `EngineUnavailable`, and end every process."""
        if self._match_task is not None:
            self._match_task.cancel()
            await asyncio.wait({self._match_task})
            self._match_task = None
        self._queue.fail_all(EngineUnavailable("the media decoders are stopping"))
        await asyncio.gather(*(engine.stop(deadline_s) for engine in self._engines))

    async def decode(
        self,
        kind: Kind,
        files: Sequence[bytes],
        image: PixelBudget | None = None,
        sample_rate: int | None = None,
        max_seconds: float | None = None,
        tenant: str | None = None,
        video: VideoOptions = NO_VIDEO_OPTIONS,
    ) -> tuple[Decoded, SharedArray]:
        """Decode one medium; see `DecodeRequest`. The last reference frees the array's memory.

        Raises:
            InvalidRequest: The files are invalid, crash their decoder or exceed its deadline.
            Overloaded: Too many requests wait.
            EngineUnavailable: The decoders are not running.
        """
        self._check(kind, files)
        payload = tuple([await _to_payload(file) for file in files])
        array = SharedArray()
        request = DecodeRequest(kind, payload, array, image, sample_rate, max_seconds, video)
        decoded = await self._decode(request, tenant)
        self.memory.track(tenant, array, decoded.layout.nbytes)
        return decoded, array

    async def read_recording(
        self, request: RecordingRequest, tenant: str | None = None
    ) -> AsyncGenerator[RecordingProgress, None]:
        """Yield what each step finds. Closing the generator stops the reading.

        If its decoder crashes, the recording is read again, up to where it was.

        Raises:
            InvalidRequest: The file is invalid, crashes its decoders or exceeds a deadline.
            Overloaded: Too many requests wait.
            EngineUnavailable: The decoders are not running.
        """
        crashes, read_s = 0, -1.0
        while True:
            try:
                async with aclosing(self._read_once(request, tenant)) as steps:
                    async for progress in steps:
                        if progress.last or progress.seconds > read_s:
                            read_s = progress.seconds
                            yield progress
                return
            except _DecoderCrashed:
                crashes += 1
                if crashes == MAX_DECODER_CRASHES:
                    raise _build_crash_error("recording") from None

    async def _read_once(
        self, request: RecordingRequest, tenant: str | None
    ) -> AsyncGenerator[RecordingProgress, None]:
        # A recording takes as long as a video, so it leaves a decoder for images as well.
        engine = await self._acquire("video", tenant)
        started_at = time.monotonic()
        try:
            async with aclosing(engine.submit(request)) as steps:
                async for progress in steps:
                    yield progress
                    started_at = time.monotonic()
        except EngineFailed as error:
            seconds = time.monotonic() - started_at
            raise self._to_client_error(engine, "recording", seconds, error) from error
        finally:
            self._release(engine)

    def _check(self, kind: Kind, files: Sequence[bytes]) -> None:
        if not files or not all(files):
            raise InvalidRequest(f"the {kind} is empty")
        if len(files) > 1 and kind != "video":
            raise InvalidRequest(f"a medium of kind {kind} is one file, not {len(files)}")
        if sum(map(len, files)) > self._limits.file_bytes:
            raise InvalidRequest(f"the {kind} has more than {self._limits.file_bytes} bytes")

    async def _decode(self, request: DecodeRequest, tenant: str | None) -> Decoded:
        """Run the request, and again if its decoder crashes: another cause is possible.

        A file that crashes `MAX_DECODER_CRASHES` decoders is rejected.
        """
        crashes = 0
        while self._match_task is not None:
            engine = await self._acquire(request.kind, tenant)
            job = asyncio.create_task(self._run(engine, request))
            self._jobs.add(job)
            job.add_done_callback(self._discard_job)
            try:
                # Cancelling the caller must not cancel the job; see the class.
                return await asyncio.shield(job)
            except EngineUnavailable:
                continue  # It ended while idle, before it received the request.
            except _DecoderCrashed:
                crashes += 1
                if crashes == MAX_DECODER_CRASHES:
                    raise _build_crash_error(request.kind) from None
        raise EngineUnavailable("the media decoders are not running")

    async def _run(self, engine: EngineProcess, request: DecodeRequest) -> Decoded:
        started_at = time.monotonic()
        try:
            async with aclosing(engine.submit(request)) as outputs:
                decoded: Decoded = await anext(outputs)
                return decoded
        except EngineFailed as error:
            raise self._to_client_error(
                engine, request.kind, time.monotonic() - started_at, error
            ) from error
        finally:
            self._release(engine)

    def _to_client_error(
        self, engine: EngineProcess, kind: str, seconds: float, error: EngineFailed
    ) -> OmniError:
        """Return the error for the caller. A process that is alive has reported its own error."""
        if engine.health.state == "ready":
            return error
        if seconds >= self._limits.decode_seconds:
            limit = self._limits.decode_seconds
            return InvalidRequest(f"the {kind} could not be decoded within {limit:g} s")
        return _DecoderCrashed(error.message)

    def _discard_job(self, job: asyncio.Task[Decoded]) -> None:
        self._jobs.discard(job)
        if not job.cancelled():
            job.exception()  # Marks it as retrieved, because the caller may be gone.

    async def _acquire(self, kind: Kind, tenant: str | None) -> EngineProcess:
        """Wait for an idle process.

        Raises:
            Overloaded: Too many requests wait.
        """
        with self._queue.join(kind, tenant) as grant:
            self._has_waiting.set()
            self._match()
            try:
                return await grant
            except asyncio.CancelledError:
                if grant.done() and not grant.cancelled() and grant.exception() is None:
                    self._release(grant.result())
                raise

    def _release(self, engine: EngineProcess) -> None:
        self._busy.discard(engine)
        self._queue.release(engine)
        self._match()

    def _match(self) -> None:
        """Assign idle processes to waiting requests."""
        for engine in self._engines:
            is_idle = engine not in self._busy and engine.health.state == "ready"
            if is_idle and self._queue.assign(engine):
                self._busy.add(engine)
        self._queue.reject_excess()

    async def _match_periodically(self) -> None:
        # Poll, because a process does not signal that it is ready again. A restart takes a second.
        while True:
            await self._has_waiting.wait()
            await asyncio.sleep(_POLL_S)
            self._match()
            if not self._queue:
                self._has_waiting.clear()
