"""The connection to one engine process: the process, its socket and its requests in flight."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sglang_omni.engines.runtime.failure import describe
from sglang_omni.engines.runtime.process_output import TO_TERMINAL, EngineOutput, OutputRules
from sglang_omni.engines.runtime.shm_cleanup import find_mapped_inodes, unlink_inodes
from sglang_omni.engines.runtime.single_reader_queue import SingleReaderQueue
from sglang_omni.engines.runtime.start_deadlines import StartDeadlines
from sglang_omni.engines.runtime.start_phases import StartPhase, StartTimeline
from sglang_omni.engines.runtime.subprocess import ENGINE_MODULE, Subprocess
from sglang_omni.engines.runtime.transport import (
    AsyncChannel,
    Cancel,
    Consumed,
    Failed,
    FromEngine,
    Heartbeat,
    Outputs,
    Profile,
    Progress,
    Ready,
    Start,
    StartFailed,
    Stop,
    Submit,
)
from sglang_omni.protocol.errors import (
    EngineFailed,
    EngineUnavailable,
    OmniError,
    Overloaded,
    StartupError,
)

_FINAL_MESSAGES_S = 1.0
# How often deadlines are checked, unless they are shorter.
_CHECK_INTERVAL_S = 0.5
# Heartbeats arrive during a step too, however long it takes.
_UNREADY_SILENCE_S = 3.0


@dataclass(frozen=True)
class ProcessSpec:
    """The specification of an engine process. All times are in seconds.

    Attributes:
        name: The engine's name, unique in the server.
        factory: The dotted path `"package.module:function"` of the worker's factory.
        settings: The factory's only argument, frozen and picklable.
        env: Environment variables, added to the server's.
        start_deadline_s: The limit from spawn to ready.
        phase_deadline_s: The limit between two progress reports of the start.
        start_silence_s: How long heartbeats may be missing while the engine starts, when libraries
            may hold the GIL for long.
        step_deadline_s: A longer step counts as a hang: the process is killed.
        silence_deadline_s: An engine without heartbeats for longer is killed. Heartbeats may be
            late on a loaded machine.
        unready_after_s: The engine is `unresponsive` while a step takes longer, or heartbeats are
            missing for longer than this or 3 s, whichever is less.
        window: How many outputs of a request may wait for their client before it is stalled.
        max_in_flight: The number of requests that are accepted at once.
        max_restart_delay_s: The longest pause before a restart.
        output: Where its output goes.
        replica: The index among the replicas of its kind.
        node: The machine that it runs on, "" for the server's own.
        gpus: The GPUs there that it uses, none on a CPU.
        module: The program of the process. An engine on another machine has a proxy here.
        companions: Further processes that start and end with it, and take no requests.
    """

    name: str
    factory: str
    settings: Any
    env: Mapping[str, str] = field(default_factory=dict)
    start_deadline_s: float = 300.0
    phase_deadline_s: float = 300.0
    start_silence_s: float = 60.0
    step_deadline_s: float = 12.0
    silence_deadline_s: float = 8.0
    unready_after_s: float = 3.0
    window: int = 32
    max_in_flight: int = 256
    max_restart_delay_s: float = 30.0
    output: OutputRules = TO_TERMINAL
    replica: int = 0
    node: str = ""
    gpus: tuple[int, ...] = ()
    module: str = ENGINE_MODULE
    companions: "tuple[ProcessSpec, ...]" = ()

    @property
    def kind(self) -> str:
        """Return the name that its replicas share: its own without the index."""
        return self.name.removesuffix(f"-{self.replica}") if self.replica else self.name

    def replicate(self, settings: Sequence[Any]) -> "tuple[ProcessSpec, ...]":
        """Return a spec for each of the `settings`. All but the first have an index in the name."""
        return tuple(
            replace(
                self,
                name=f"{self.name}-{index}" if index else self.name,
                settings=replica_settings,
                replica=index,
            )
            for index, replica_settings in enumerate(settings)
        )


class _StartTimeout(Exception):
    """A deadline of the start was exceeded. The message continues the engine's name."""


def _merge_waiting(output: Any, outputs: SingleReaderQueue[Any]) -> tuple[Any, int]:
    """Merge an output with those that wait behind it. Return it and how many outputs it holds."""
    # `isinstance` with a protocol would cost as much as the rest of this function.
    merge = getattr(output, "merge", None) if outputs.num_waiting else None
    if merge is None:
        return output, 1
    waiting = outputs.take_while(lambda later: not isinstance(later, OmniError))
    return merge(waiting), 1 + len(waiting)


class EngineConnection:
    """Owns one engine process and the table of its requests, which is empty after its end.

    The life cycle is `open`, any number of `run`, then the end of the process, by itself or by
    `stop`. A connection is never reused.
    """

    def __init__(self, spec: ProcessSpec, lost: asyncio.Event) -> None:
        """Spawn the process. `lost` is set when it ends or hangs; companions share it.

        Raises:
            StartupError: The operating system cannot spawn it.
        """
        self._spec = spec
        self._output = EngineOutput(spec.name, spec.output)
        try:
            self._process = Subprocess(spec.name, spec.env, self._output, spec.module)
        except OSError as error:
            raise StartupError(f"{spec.name} could not be spawned: {error}") from error
        self._channel: AsyncChannel
        self._requests: dict[str, SingleReaderQueue[Any]] = {}
        self._end_task: asyncio.Task[str] | None = None
        self._silent_s = 0.0
        self._busy_s = 0.0
        self.lost = lost
        self.is_lost = False
        self.info: Any = None
        self.progress = ""
        self.start_phases: tuple[StartPhase, ...] = ()
        self.counters: Mapping[str, float] = {}

    @property
    def name(self) -> str:
        """Return the engine's name."""
        return self._spec.name

    @property
    def pid(self) -> int:
        """Return the engine's process id, which is also the id of its process group."""
        return self._process.pid

    @property
    def in_flight(self) -> int:
        """Return the number of requests in flight."""
        return len(self._requests)

    @property
    def is_unresponsive(self) -> bool:
        """Return whether heartbeats are missing, or a step takes, for longer than when ready."""
        limit = self._spec.unready_after_s
        return self._busy_s > limit or self._silent_s > min(limit, _UNREADY_SILENCE_S)

    async def open(self) -> None:
        """Wait until the engine is ready. If anything is raised, the process is gone by then.

        Raises:
            StartupError: The start failed. The message has the reason that the engine reported, or
                else its last output lines.
        """
        try:
            await self._handshake()
        except BaseException as error:
            self._process.kill()
            await asyncio.shield(self._process.exited)
            if not isinstance(error, Exception):
                raise
            raise self._startup_error(error) from error
        self._end_task = asyncio.create_task(self._follow())

    async def run(self, request_id: str, request: Any) -> AsyncGenerator[Any, None]:
        """Submit a request on the first iteration and yield its outputs; see `EngineProcess`."""
        outputs = self._submit(request_id, request)
        num_unreported = 0
        try:
            while True:
                output = await outputs.get()
                if isinstance(output, OmniError):
                    raise output
                output, num_merged = _merge_waiting(output, outputs)
                num_unreported += num_merged
                if output.last:
                    yield output
                    return
                # Report half a window at a time: few messages, and the engine never waits for one.
                if num_unreported * 2 >= self._spec.window:
                    self._channel.send(Consumed(request_id, num_unreported))
                    num_unreported = 0
                yield output
        finally:
            if self._requests.pop(request_id, None) is not None:
                self._channel.send(Cancel(request_id))

    @property
    def error_suffix(self) -> str:
        """Return the last lines of the process's output, to append to an error message."""
        return self._output.error_suffix

    def profile(self, folder: str | None) -> None:
        """Start the profiler, or with None stop it. The engine logs errors to its output."""
        self._channel.send(Profile(folder))

    async def stop(self, deadline_s: float) -> None:
        """Stop the process: send `Stop`, wait up to `deadline_s` seconds, kill its group."""
        self._fail_requests(EngineUnavailable, "is stopping")
        # SGLang kills every child of its process at shutdown, including our orphan reaper, so the
        # server cleans up shared memory itself.
        shared = await asyncio.to_thread(find_mapped_inodes, self.pid)
        if self._end_task is not None:
            self._channel.send(Stop())
            await asyncio.wait({self._end_task}, timeout=deadline_s)
        self._process.kill()
        await asyncio.shield(self._process.exited)
        if self._end_task is not None:
            await self._end_task
        await asyncio.to_thread(unlink_inodes, shared)

    def kill(self) -> None:
        """Kill the process. Its requests fail as if it had died."""
        self._process.kill()

    async def wait_ended(self) -> str:
        """Wait until the process is gone. Return the reason, which continues the engine's name."""
        assert self._end_task is not None
        return await asyncio.shield(self._end_task)

    async def _handshake(self) -> None:
        spec = self._spec
        self._channel = await AsyncChannel.connect(self._process.sock)
        self._channel.send(Start(spec.factory, spec.settings, spec.window))
        limits = (spec.start_deadline_s, spec.phase_deadline_s, spec.start_silence_s)
        deadlines = StartDeadlines.start(time.monotonic(), *limits)
        timeline = StartTimeline.start(time.monotonic())
        while True:
            match await self._receive_in_time(deadlines):
                case Ready(info):
                    self.info = info
                    self.start_phases = timeline.finish(time.monotonic())
                    return
                case StartFailed(reason, explained):
                    raise StartupError(reason) if explained else EngineFailed(reason)
                case Progress(text):
                    self.progress = text
                    deadlines = deadlines.enter_phase(text, time.monotonic())
                    timeline = timeline.enter_phase(text, time.monotonic())
                case _:
                    deadlines = deadlines.record_message(time.monotonic())

    async def _receive_in_time(self, deadlines: StartDeadlines) -> FromEngine:
        try:
            async with asyncio.timeout(max(0.0, deadlines.next_deadline() - time.monotonic())):
                return await self._channel.receive()
        except TimeoutError:
            raise _StartTimeout(deadlines.describe()) from None

    def _startup_error(self, error: Exception) -> StartupError:
        name, output = self._spec.name, self._output
        if isinstance(error, _StartTimeout):
            return StartupError(f"{name} {error}{output.error_suffix}")
        if isinstance(error, EOFError):
            reason = f"{self._process.exit_reason} while starting"
            return StartupError(f"{name} {reason}{output.error_suffix}")
        # An `OmniError` of the factory explains itself. Any other error needs its traceback.
        suffix = output.location if isinstance(error, StartupError) else output.error_suffix
        return StartupError(f"{name} could not start: {describe(error)}{suffix}")

    def _submit(self, request_id: str, request: Any) -> SingleReaderQueue[Any]:
        if self.lost.is_set():
            raise EngineUnavailable(f"{self._spec.name} is not available")
        if len(self._requests) >= self._spec.max_in_flight:
            raise Overloaded(
                f"{self._spec.name} is at capacity ({len(self._requests)} requests); retry later"
            )
        self._channel.send(Submit(request_id, request))
        self._requests[request_id] = SingleReaderQueue()
        return self._requests[request_id]

    async def _follow(self) -> str:
        """Wait for the end of the process, however it shows first, and return the reason."""
        receiver = asyncio.create_task(self._receive())
        hang_detector = asyncio.create_task(self._detect_hang())
        exited = self._process.exited
        end_signals: set[asyncio.Future[Any]] = {receiver, hang_detector, exited}
        await asyncio.wait(end_signals, return_when=asyncio.FIRST_COMPLETED)
        if not hang_detector.done():
            # End-of-file and exit come together. Wait briefly for the last messages.
            await asyncio.wait({receiver}, timeout=_FINAL_MESSAGES_S)
        self._fail_requests(EngineFailed, "died while processing the request")
        if receiver.done() and not receiver.result():
            await asyncio.wait({exited}, timeout=_FINAL_MESSAGES_S)
        self._process.kill()
        await exited
        reasons = [task.result() for task in (receiver, hang_detector) if task.done()]
        receiver.cancel()
        hang_detector.cancel()
        self._channel.close()
        return next(filter(None, reasons), self._process.exit_reason)

    async def _receive(self) -> str:
        """Dispatch messages until the end. Return the error in them, or "" at end-of-file."""
        try:
            while True:
                self._dispatch(await self._channel.receive())
        except EOFError:
            return ""
        except Exception as error:
            return f"sent an unreadable message: {describe(error)}"

    def _dispatch(self, message: FromEngine) -> None:
        self._silent_s = 0.0
        match message:
            case Outputs(outputs):
                for request_id, output in outputs:
                    self._deliver(request_id, output, output.last)
            case Failed(request_id, error):
                self._deliver(request_id, error, True)
            case Heartbeat(counters, busy_s):
                self.counters = counters
                self._busy_s = busy_s

    def _deliver(self, request_id: str, result: Any, last: bool) -> None:
        """Queue a result unless its request was cancelled. The window bounds the queue."""
        outputs = self._requests.get(request_id)
        if outputs is not None:
            outputs.put(result)
        if last:
            self._requests.pop(request_id, None)

    async def _detect_hang(self) -> str:
        """Wait until the engine hangs, and return how it does.

        Silence is summed over the iterations of this loop. Each counts with its duration, limited
        to twice the interval: if the API process itself was blocked, heartbeats that it has not
        read yet must not count as missing.
        """
        spec, checked_at = self._spec, time.monotonic()
        interval_s = min(_CHECK_INTERVAL_S, spec.unready_after_s / 6, spec.silence_deadline_s / 6)
        while self._busy_s <= spec.step_deadline_s:
            if self._silent_s > spec.silence_deadline_s:
                return f"sent no heartbeat for {self._silent_s:.1f} s"
            await asyncio.sleep(interval_s)
            now = time.monotonic()
            self._silent_s += min(now - checked_at, 2 * interval_s)
            checked_at = now
        return f"hung in a step for {self._busy_s:.1f} s"

    def _fail_requests(self, error: type[OmniError], reason: str) -> None:
        """Refuse new requests and fail those in flight."""
        self.is_lost = True
        self.lost.set()
        for outputs in self._requests.values():
            outputs.put(error(f"{self._spec.name} {reason}"))
        self._requests.clear()
