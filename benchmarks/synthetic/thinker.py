"""A thinker without a model: every running request gains one token per step, at a given pace.

It serves to measure the path from its tokens to the client's socket without a GPU.
"""

import time
from dataclasses import dataclass

from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.engines.thinker.contract import ThinkerInfo, ThinkerOutput, ThinkerRequest

CONTEXT = 8192


@dataclass(frozen=True)
class ThinkerPace:
    """The pace of the synthetic thinker.

    `requests` run at once, and gain a token every `step_ms`: those of `answer`, repeated, up to the
    `max_tokens` of each.
    """

    requests: int = 1024
    step_ms: float = 8.0
    answer: tuple[int, ...] = (0,)


@dataclass
class _RunningRequest:
    """One request: the number of its tokens made by steps, and of those sent."""

    request: ThinkerRequest
    sent: int = 0
    made: int = 0


class SyntheticThinker:
    """A `StepWorker`. A stalled client later gets all tokens made meanwhile in one output."""

    def __init__(self, pace: ThinkerPace) -> None:
        self._pace = pace
        self._runs: dict[str, _RunningRequest] = {}
        self._steps = self._tokens = 0
        self._due_at = 0.0
        self.info = ThinkerInfo(
            CONTEXT, CONTEXT * pace.requests, pace.requests, supports_json_schema=False
        )

    @property
    def busy(self) -> bool:
        """Return whether a request is running."""
        return bool(self._runs)

    def step(self, work: StepInput) -> StepResults:
        """Make one token for every request, at the end of the step. Lost time is not recovered."""
        for request_id in work.cancellations:
            del self._runs[request_id]
        self._runs |= {
            request_id: _RunningRequest(request) for request_id, request in work.arrivals
        }
        self._due_at = max(time.monotonic(), self._due_at + self._pace.step_ms / 1e3)
        time.sleep(max(0.0, self._due_at - time.monotonic()))
        self._steps += 1
        for running in self._runs.values():
            running.made = min(running.made + 1, running.request.sampling.max_tokens)
        ready = [name for name in self._runs if name not in work.stalled]
        return [(name, self._output(name)) for name in ready]

    def counters(self) -> dict[str, float]:
        """Return the running requests, and totals since the start."""
        return {"running": len(self._runs), "steps": self._steps, "tokens": self._tokens}

    def close(self) -> None:
        """Drop every request."""
        self._runs.clear()

    def _output(self, request_id: str) -> ThinkerOutput:
        running, answer = self._runs[request_id], self._pace.answer
        tokens = tuple(answer[index % len(answer)] for index in range(running.sent, running.made))
        last = running.made == running.request.sampling.max_tokens
        if last:
            del self._runs[request_id]
        running.sent = running.made
        self._tokens += len(tokens)
        return ThinkerOutput(
            tokens,
            prompt_tokens=len(running.request.input_ids),
            cached_tokens=0,
            completion_tokens=running.made,
            finish_reason="length" if last else None,
        )


def open_worker(pace: ThinkerPace) -> SyntheticThinker:
    """Open the worker of the engine process."""
    return SyntheticThinker(pace)
