"""A talker without a model: chunks of the real size, at the pace it is told. For measuring the
path from an engine's step to the client's socket where there is no GPU."""

import time
from dataclasses import dataclass

import numpy as np

from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerInfo, TalkerRequest

SAMPLE_RATE = 44_100
PATCH_SAMPLES = 14_112
VOICE = "synthetic"


@dataclass(frozen=True)
class SyntheticSettings:
    """How the synthetic talker runs.

    `slots` requests are held at once and at most `batch` of them gain a patch in a step, which
    takes `step_ms` and `stream_ms` more for each. Every request is spoken in `patches` patches.
    """

    slots: int = 1024
    batch: int = 128
    step_ms: float = 3.0
    stream_ms: float = 0.25
    patches: int = 20


class SyntheticTalker:
    """A `StepWorker`; whoever stepped longest ago steps next."""

    def __init__(self, settings: SyntheticSettings) -> None:
        self._settings = settings
        self._waiting: dict[str, TalkerRequest] = {}
        self._left: dict[str, int] = {}
        self._runnable = False
        self._steps = 0
        self._patches = 0
        self._tone = (0.25 * np.sin(np.arange(PATCH_SAMPLES) / 16)).astype(np.float32)
        self.info = TalkerInfo(SAMPLE_RATE, 0.32, (VOICE,), settings.slots)

    @property
    def busy(self) -> bool:
        """Whether anybody could step who was not stalled, or take a slot that is free."""
        return self._runnable or bool(self._waiting and len(self._left) < self._settings.slots)

    def step(self, work: StepInput) -> StepResults:
        """One patch for each of at most `batch` requests, then a rest for as long as it takes."""
        began = time.monotonic()
        for request_id in work.cancellations:
            if self._waiting.pop(request_id, None) is None:
                del self._left[request_id]
        self._waiting.update(work.arrivals)
        self._admit()
        chosen = [key for key in self._left if key not in work.stalled][: self._settings.batch]
        results: StepResults = [(request_id, self._chunk(request_id)) for request_id in chosen]
        self._runnable = any(key not in work.stalled for key in self._left)
        self._steps += bool(chosen)
        self._patches += len(chosen)
        took = (self._settings.step_ms + self._settings.stream_ms * len(chosen)) / 1e3
        time.sleep(max(0.0, took - (time.monotonic() - began)))
        return results

    def counters(self) -> dict[str, float]:
        """What is held now, and totals since the start."""
        held = {"active_slots": len(self._left), "waiting": len(self._waiting)}
        return {**held, "steps": self._steps, "patches": self._patches}

    def close(self) -> None:
        """Forget every request."""
        self._left.clear()
        self._waiting.clear()

    def _admit(self) -> None:
        for request_id in list(self._waiting)[: self._settings.slots - len(self._left)]:
            del self._waiting[request_id]
            self._left[request_id] = self._settings.patches

    def _chunk(self, request_id: str) -> TalkerChunk:
        left = self._left.pop(request_id) - 1
        # The decoder looks ahead: the first patch gives no samples, the last gives two patches.
        first, last = left + 1 == self._settings.patches, left == 0
        if not last:
            self._left[request_id] = left
        pieces = 2 if last and not first else int(last or not first)
        return TalkerChunk(np.tile(self._tone, pieces), patches=1, last=last)


def open_worker(settings: SyntheticSettings) -> SyntheticTalker:
    """The factory of the engine process."""
    return SyntheticTalker(settings)
