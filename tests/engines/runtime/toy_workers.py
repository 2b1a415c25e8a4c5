"""Workers that count, and misbehave when asked to, for the tests of the engine processes."""

import asyncio
import mmap
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.protocol.errors import CheckpointError, InvalidRequest
from sglang_omni.system.progress import report_progress

_KEPT: list[mmap.mmap] = []


@dataclass(frozen=True)
class ToySettings:
    """`fault` is what goes wrong at the start, if `only_if` is None or exists.

    `slots` is how many requests the toy that steps advances at once. `shared` maps named shared
    memory.
    """

    fault: str = ""
    only_if: Path | None = None
    grandchild: bool = False
    shared: bool = False
    slots: int = 10**9


@dataclass(frozen=True)
class Count:
    """Ask for the numbers from 0 up to, without, `upto`; a `fault` happens instead of the first.

    Only the fault "endless" comes at the end: the last number does not say that it is.
    """

    upto: int
    fault: str = ""


@dataclass(frozen=True)
class Number:
    """One output."""

    value: int
    last: bool
    baggage: object = None


@dataclass(frozen=True)
class ToyInfo:
    """What a toy says about itself."""

    pid: int
    grandchild: int | None
    slots: int
    shared: str = ""


def make_step(settings: ToySettings) -> "StepToy":
    """Build a toy that batches by steps."""
    return StepToy(_start(settings), settings.slots)


def make_stream(settings: ToySettings) -> "StreamToy":
    """Build a toy that batches by itself."""
    info = _start(settings)
    # As SGLang does: bring a loop of one's own.
    asyncio.set_event_loop(asyncio.new_event_loop())
    return StreamToy(info)


class StepToy:
    """Advances each of the first `slots` requests by one number a step; the others wait."""

    def __init__(self, info: ToyInfo, slots: int) -> None:
        self.info = info
        self._slots = slots
        self._runnable = False
        self._held: dict[str, tuple[Count, int]] = {}
        self._counted = dict.fromkeys(("steps", "outputs", "arrived", "cancelled"), 0.0)

    @property
    def busy(self) -> bool:
        return self._runnable

    def step(self, work: StepInput) -> StepResults:
        self._counted["steps"] += 1
        for request_id in work.cancellations:
            del self._held[request_id]  # A cancellation of what is not held is a broken contract.
            self._counted["cancelled"] += 1
        for request_id, request in work.arrivals:
            self._held[request_id] = (request, 0)
            self._counted["arrived"] += 1
        time.sleep(0.0005)
        results: StepResults = [(key, self._advance(key)) for key in self._choose(work)]
        self._counted["outputs"] += len(results)
        self._runnable = bool(self._choose(work))
        return results

    def counters(self) -> dict[str, float]:
        waiting = max(0, len(self._held) - self._slots)
        return {"held": len(self._held), "waiting": waiting, **self._counted}

    def close(self) -> None:
        print("closed")

    def _choose(self, work: StepInput) -> list[str]:
        return [key for key in list(self._held)[: self._slots] if key not in work.stalled]

    def _advance(self, request_id: str) -> Number | Exception:
        request, value = self._held[request_id]
        try:
            _misbehave(request.fault)
        except (InvalidRequest, LookupError) as error:
            del self._held[request_id]
            return error
        number = Number(value, value + 1 == request.upto, _baggage(request))
        if number.last:
            del self._held[request_id]
        else:
            self._held[request_id] = (request, value + 1)  # In its old place.
        return number


class StreamToy:
    """Runs every request as a coroutine of its own."""

    def __init__(self, info: ToyInfo) -> None:
        self.info = info
        self._loop = asyncio.get_event_loop()
        self._counted = dict.fromkeys(("held", "outputs", "arrived", "cancelled"), 0.0)
        self._broken = False

    async def run(self, request_id: str, request: Count) -> AsyncGenerator[Number, None]:
        assert asyncio.get_running_loop() is self._loop
        self._counted["arrived"] += 1
        self._counted["held"] += 1
        try:
            self._broken = request.fault == "crash"
            _misbehave(request.fault.replace("crash", ""))
            for value in range(request.upto):
                await asyncio.sleep(0.0005)
                self._counted["outputs"] += 1
                last = value + 1 == request.upto and request.fault != "endless"
                yield Number(value, last, _baggage(request))
        except (GeneratorExit, asyncio.CancelledError):
            self._counted["cancelled"] += request.upto > value + 1
            raise
        finally:
            self._counted["held"] -= 1

    async def counters(self) -> dict[str, float]:
        if self._broken:
            raise RuntimeError("the toy broke")
        return dict(self._counted)

    async def profile(self, folder: str | None) -> None:
        print(f"profiling to {folder}")

    async def close(self) -> None:
        print("closed")


def _start(settings: ToySettings) -> ToyInfo:
    report_progress("loading toys")
    if settings.only_if is None or settings.only_if.exists():
        _fail_to_start(settings.fault)
    grandchild = _fork_sleeper() if settings.grandchild else None
    shared = _share() if settings.shared else ""
    return ToyInfo(os.getpid(), grandchild, settings.slots, shared)


def _fork_sleeper() -> int:
    if pid := os.fork():
        return pid
    time.sleep(600)
    os._exit(0)


def _share() -> str:
    """Map memory with a name of its own, as libraries do, and never unlink it."""
    name = f"toy-{os.getpid()}"
    with open(f"/dev/shm/{name}", "w+b") as file:
        file.truncate(4096)
        _KEPT.append(mmap.mmap(file.fileno(), 4096))
    return name


def _fail_to_start(fault: str) -> None:
    match fault:
        case "raise":
            raise RuntimeError(f"no toys, pid={os.getpid()}")
        case "checkpoint":
            raise CheckpointError("toys.safetensors is missing")
        case "exit":
            print("the last words of the toy", file=sys.stderr)
            os._exit(3)
        case "stop":
            time.sleep(0.3)  # What was said last is to leave first.
            os.kill(os.getpid(), signal.SIGSTOP)
        case "sleep":
            print(f"pid={os.getpid()}")
            time.sleep(600)


def _baggage(request: Count) -> object:
    """What cannot be pickled, if that is the fault."""
    return (lambda: None) if request.fault == "unpicklable" else None


def _misbehave(fault: str) -> None:
    match fault:
        case "refuse":
            raise InvalidRequest("no such toy", param="toy")
        case "error":
            raise KeyError("a foreign error")
        case "crash":
            raise RuntimeError("the toy broke")
        case "memory":
            raise MemoryError("no room for a toy")
        case "hang":
            time.sleep(600)
        case "exit":
            os._exit(5)
