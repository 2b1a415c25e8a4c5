"""A talker without a model: chunks of the real size, at a given pace.

It serves to measure the path from an engine's step to the client's socket without a GPU.
"""

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
    """The pace of the synthetic talker.

    It has `slots` slots. At most `batch` requests gain a patch in a step, which takes `step_ms`,
    and `stream_ms` more for each. Every request is spoken in `patches` patches.
    """

    slots: int = 1024
    batch: int = 128
    step_ms: float = 3.0
    stream_ms: float = 0.25
    patches: int = 20


class SyntheticTalker:
    """A `StepWorker` that steps the requests that have waited longest."""

    def __init__(self, settings: SyntheticSettings) -> None:
        self._settings = settings
        self._waiting: dict[str, TalkerRequest] = {}
        self._remaining: dict[str, int] = {}
        self._runnable = False
        self._steps = 0
        self._patches = 0
        self._tone = (0.25 * np.sin(np.arange(PATCH_SAMPLES) / 16)).astype(np.float32)
        self.info = TalkerInfo(SAMPLE_RATE, 0.32, (VOICE,), settings.slots)

    @property
    def busy(self) -> bool:
        """Return whether a request that is not stalled can step, or one can take a free slot."""
        return self._runnable or bool(self._waiting and len(self._remaining) < self._settings.slots)

    def step(self, work: StepInput) -> StepResults:
        """Make one patch for each of at most `batch` requests.

        Then sleep for the rest of the step.
        """
        started_at = time.monotonic()
        for request_id in work.cancellations:
            if self._waiting.pop(request_id, None) is None:
                del self._remaining[request_id]
        self._waiting.update(work.arrivals)
        self._admit()
        stepped = [key for key in self._remaining if key not in work.stalled][
            : self._settings.batch
        ]
        results: StepResults = [(request_id, self._chunk(request_id)) for request_id in stepped]
        self._runnable = any(key not in work.stalled for key in self._remaining)
        self._steps += bool(stepped)
        self._patches += len(stepped)
        step_s = (self._settings.step_ms + self._settings.stream_ms * len(stepped)) / 1e3
        time.sleep(max(0.0, step_s - (time.monotonic() - started_at)))
        return results

    def counters(self) -> dict[str, float]:
        """Return the current requests, and totals since the start."""
        current = {"active_slots": len(self._remaining), "waiting": len(self._waiting)}
        return {**current, "steps": self._steps, "patches": self._patches}

    def close(self) -> None:
        """Drop every request."""
        self._remaining.clear()
        self._waiting.clear()

    def _admit(self) -> None:
        for request_id in list(self._waiting)[: self._settings.slots - len(self._remaining)]:
            del self._waiting[request_id]
            self._remaining[request_id] = self._settings.patches

    def _chunk(self, request_id: str) -> TalkerChunk:
        remaining = self._remaining.pop(request_id) - 1
        # The decoder has lookahead: the first patch gives no samples, the last gives those of two.
        first, last = remaining + 1 == self._settings.patches, remaining == 0
        if not last:
            self._remaining[request_id] = remaining
        num_tones = 2 if last and not first else int(last or not first)
        return TalkerChunk(np.tile(self._tone, num_tones), patches=1, last=last)


def open_worker(settings: SyntheticSettings) -> SyntheticTalker:
    """Open the worker of the engine process."""
    return SyntheticTalker(settings)
