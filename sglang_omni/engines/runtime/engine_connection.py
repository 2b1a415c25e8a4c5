"""One life of an engine: its process, its socket and the requests it works on."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sglang_omni.engines.runtime.failure import describe
from sglang_omni.engines.runtime.process_output import TO_TERMINAL, OutputRules
from sglang_omni.engines.runtime.shm_cleanup import mapped_by, unlink
from sglang_omni.engines.runtime.single_reader_queue import SingleReaderQueue
from sglang_omni.engines.runtime.start_deadlines import StartWatch
from sglang_omni.engines.runtime.subprocess import Subprocess
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

_LAST_WORDS_S = 1.0
# How often an engine is looked at, unless its deadlines are shorter.
_LOOK_S = 0.5
# However long a step may take, its engine is heard meanwhile.
_UNREADY_SILENCE_S = 3.0


@dataclass(frozen=True)
class ProcessSpec:
    """What an engine process is and how long it may take.

    `factory` is the dotted path `"package.module:function"` of the worker's factory and `settings`
    its one argument, frozen and picklable. `env` is added to the server's environment.
    `start_deadline_s` bounds spawn to ready, and `phase_deadline_s` any one phase of it, from one
    word of progress to the next. An engine has hung when a step takes longer than
    `step_deadline_s`, or when nothing is heard of it for `silence_deadline_s` (for
    `start_silence_s` while it starts, when libraries may hold the interpreter for long); beats may
    be late on a loaded machine. It is unready, but left alone, when a step takes longer than
    `unready_after_s`, or after a silence of that, or of 3 s if that is longer.
    `window` outputs of a request may wait for their client before the request is stalled.
    `max_in_flight` requests are accepted at once. `longest_delay_s` is the longest pause before a
    restart, however often the process dies. `output` says where what it prints goes. `kind` and
    `replica` say which of several alike it is.
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
    longest_delay_s: float = 30.0
    output: OutputRules = TO_TERMINAL
    replica: int = 0

    @property
    def kind(self) -> str:
        """What its replicas have in common: their name, less the number."""
        return self.name.removesuffix(f"-{self.replica}") if self.replica else self.name

    def replicas(self, settings: Sequence[Any]) -> "tuple[ProcessSpec, ...]":
        """One for each of the `settings`; all but the first have a number in their names."""
        return tuple(
            replace(
                self,
                name=f"{self.name}-{number}" if number else self.name,
                settings=one,
                replica=number,
            )
            for number, one in enumerate(settings)
        )


class _StartTimeout(Exception):
    """A deadline of the start ran out; the message ends a sentence that begins with the name."""


def _with_waiting(output: Any, outputs: SingleReaderQueue[Any]) -> tuple[Any, int]:
    """An output together with those that wait behind it already, and how many these are; mostly it
    is alone."""
    # Asked by name: to ask for the protocol costs as much as all else that is done here.
    join = getattr(output, "joined", None) if outputs.waiting else None
    if join is None:
        return output, 1
    waiting = outputs.take_while(lambda later: not isinstance(later, OmniError))
    return join(waiting), 1 + len(waiting)


class EngineConnection:
    """Owns one child and the table of its requests, which ends empty with the child.

    Life is `open`, then any number of `run`, then the loss of the process by itself or by `stop`.
    A session is never started again.
    """

    def __init__(self, spec: ProcessSpec) -> None:
        """Spawn the process. Raises `StartupError` if the system refuses."""
        self._spec = spec
        try:
            self._child = Subprocess(spec.name, spec.env, spec.output)
        except OSError as error:
            raise StartupError(f"{spec.name} could not be spawned: {error}") from error
        self._channel: AsyncChannel
        self._requests: dict[str, SingleReaderQueue[Any]] = {}
        self._life: asyncio.Task[str] | None = None
        self._silent_s = 0.0
        self._busy_s = 0.0
        self.lost = asyncio.Event()
        self.info: Any = None
        self.progress = ""
        self.counters: Mapping[str, float] = {}

    @property
    def pid(self) -> int:
        """The engine's process id, which is also that of its process group."""
        return self._child.pid

    @property
    def in_flight(self) -> int:
        """The number of requests the engine works on."""
        return len(self._requests)

    @property
    def unresponsive(self) -> bool:
        """Whether it has been silent, or in one step, for longer than a ready engine is."""
        limit = self._spec.unready_after_s
        return self._busy_s > limit or self._silent_s > min(limit, _UNREADY_SILENCE_S)

    async def open(self) -> None:
        """Wait until the engine is ready.

        Raises `StartupError` with the reason the engine gave, or else with its last lines. Whatever
        is raised, the process is gone by then.
        """
        try:
            await self._shake_hands()
        except BaseException as error:
            self._child.kill()
            await asyncio.shield(self._child.exited)
            if not isinstance(error, Exception):
                raise
            raise self._startup_error(error) from error
        self._life = asyncio.create_task(self._live())

    async def run(self, request_id: str, request: Any) -> AsyncGenerator[Any, None]:
        """Submit a request on the first iteration and yield its outputs; see `EngineProcess`."""
        outputs = self._submit(request_id, request)
        taken = 0
        try:
            while True:
                output = await outputs.get()
                if isinstance(output, OmniError):
                    raise output
                output, several = _with_waiting(output, outputs)
                taken += several
                if output.last:
                    yield output
                    return
                # Half a window at a time: one message for many outputs, and no client waits for it.
                if taken * 2 >= self._spec.window:
                    self._channel.send(Consumed(request_id, taken))
                    taken = 0
                yield output
        finally:
            if self._requests.pop(request_id, None) is not None:
                self._channel.send(Cancel(request_id))

    @property
    def last_words(self) -> str:
        """What the process printed last, as the rest of an error message."""
        return self._child.output.last_words

    def profile(self, folder: str | None) -> None:
        """Begin to profile, or end it; what goes wrong is in the engine's output."""
        self._channel.send(Profile(folder))

    async def stop(self, deadline_s: float) -> None:
        """End the process: ask, wait up to `deadline_s`, kill. Nothing of it is left on return."""
        self._lose(EngineUnavailable, "is stopping")
        # The guard may be gone by then: to shut down, SGLang kills every child of its process.
        shared = await asyncio.to_thread(mapped_by, self.pid)
        if self._life is not None:
            self._channel.send(Stop())
            await asyncio.wait({self._life}, timeout=deadline_s)
        self._child.kill()
        await asyncio.shield(self._child.exited)
        if self._life is not None:
            await self._life
        await asyncio.to_thread(unlink, shared)

    async def ended(self) -> str:
        """Wait until the process is gone and return why, as the end of a sentence."""
        assert self._life is not None
        return await asyncio.shield(self._life)

    async def _shake_hands(self) -> None:
        spec = self._spec
        self._channel = await AsyncChannel.over(self._child.end)
        self._channel.send(Start(spec.factory, spec.settings, spec.window))
        times = (spec.start_deadline_s, spec.phase_deadline_s, spec.start_silence_s)
        watch = StartWatch.at(time.monotonic(), *times)
        while True:
            match await self._receive_before(watch):
                case Ready(info):
                    self.info = info
                    return
                case StartFailed(reason, explained):
                    raise StartupError(reason) if explained else EngineFailed(reason)
                case Progress(text):
                    self.progress = text
                    watch = watch.entered(text, time.monotonic())
                case _:
                    watch = watch.heard(time.monotonic())

    async def _receive_before(self, watch: StartWatch) -> FromEngine:
        try:
            async with asyncio.timeout(max(0.0, watch.ends() - time.monotonic())):
                return await self._channel.receive()
        except TimeoutError:
            raise _StartTimeout(watch.reason()) from None

    def _startup_error(self, error: Exception) -> StartupError:
        name, output = self._spec.name, self._child.output
        if isinstance(error, _StartTimeout):
            return StartupError(f"{name} {error}{output.last_words}")
        if isinstance(error, EOFError):
            reason = f"{self._child.exit_reason} while starting"
            return StartupError(f"{name} {reason}{output.last_words}")
        # An error of our own explains itself; of another the traceback is needed.
        more = output.place if isinstance(error, StartupError) else output.last_words
        return StartupError(f"{name} could not start: {describe(error)}{more}")

    def _submit(self, request_id: str, request: Any) -> SingleReaderQueue[Any]:
        if self.lost.is_set():
            raise EngineUnavailable(f"{self._spec.name} is not available")
        if len(self._requests) >= self._spec.max_in_flight:
            raise Overloaded(f"{self._spec.name} already works on {len(self._requests)} requests")
        self._channel.send(Submit(request_id, request))
        self._requests[request_id] = SingleReaderQueue()
        return self._requests[request_id]

    async def _live(self) -> str:
        """Follow the process to its end, whichever sign of it comes first."""
        receiving = asyncio.create_task(self._receive())
        watching = asyncio.create_task(self._watch())
        exited = self._child.exited
        signs: set[asyncio.Future[Any]] = {receiving, watching, exited}
        await asyncio.wait(signs, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            # End-of-file and exit come together; what the engine said last is worth a moment.
            await asyncio.wait({receiving}, timeout=_LAST_WORDS_S)
        self._lose(EngineFailed, "died while it worked on the request")
        if receiving.done() and not receiving.result():
            await asyncio.wait({exited}, timeout=_LAST_WORDS_S)
        self._child.kill()
        await exited
        verdicts = [task.result() for task in (receiving, watching) if task.done()]
        receiving.cancel()
        watching.cancel()
        self._channel.close()
        return next(filter(None, verdicts), self._child.exit_reason)

    async def _receive(self) -> str:
        """Dispatch messages to the end; return what was wrong with them, or "" at end-of-file."""
        try:
            while True:
                self._dispatch(await self._channel.receive())
        except EOFError:
            return ""
        except Exception as error:
            return f"sent what cannot be read: {describe(error)}"

    def _dispatch(self, message: FromEngine) -> None:
        self._silent_s = 0.0
        match message:
            case Outputs(outputs):
                for request_id, output in outputs:
                    self._hand_over(request_id, output, output.last)
            case Failed(request_id, error):
                self._hand_over(request_id, error, True)
            case Heartbeat(counters, busy_s):
                self.counters = counters
                self._busy_s = busy_s

    def _hand_over(self, request_id: str, result: Any, last: bool) -> None:
        """Give a result to its request, unless that was cancelled. The window bounds the queue."""
        outputs = self._requests.get(request_id)
        if outputs is not None:
            outputs.put(result)
        if last:
            self._requests.pop(request_id, None)

    async def _watch(self) -> str:
        """Return once the engine has hung, saying how.

        Silence is counted in turns of this loop, each for as long as it took but little more than
        it should have: if the API process itself was held up, the beats it has not read yet must
        not count as missing.
        """
        spec, looked_at = self._spec, time.monotonic()
        look_s = min(_LOOK_S, spec.unready_after_s / 6, spec.silence_deadline_s / 6)
        while self._busy_s <= spec.step_deadline_s:
            if self._silent_s > spec.silence_deadline_s:
                return f"gave no sign of life for {self._silent_s:.1f} s"
            await asyncio.sleep(look_s)
            now = time.monotonic()
            self._silent_s += min(now - looked_at, 2 * look_s)
            looked_at = now
        return f"hung in a step for {self._busy_s:.1f} s"

    def _lose(self, error: type[OmniError], what: str) -> None:
        """Refuse new requests and fail those in flight."""
        self.lost.set()
        for outputs in self._requests.values():
            outputs.put(error(f"{self._spec.name} {what}"))
        self._requests.clear()
