"""A thinker without a model: every running request gains one token a step, at the pace it is told,
as SGLang's do. For measuring the path from its tokens to the client's socket without a GPU."""

import time
from dataclasses import dataclass

from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.engines.thinker.contract import ThinkerInfo, ThinkerOutput, ThinkerRequest

CONTEXT = 8192


@dataclass(frozen=True)
class ThinkerPace:
    """`requests` run at once, and gain a token every `step_ms`: those of `answer`, over and over,
    up to the `max_tokens` of each."""

    requests: int = 1024
    step_ms: float = 8.0
    answer: tuple[int, ...] = (0,)


@dataclass
class _Run:
    """One request: what it has been sent, of what the steps have made for it."""

    request: ThinkerRequest
    sent: int = 0
    made: int = 0


class SyntheticThinker:
    """A `StepWorker`. Whose client is behind gets what was made meanwhile in one output, later."""

    def __init__(self, pace: ThinkerPace) -> None:
        self._pace = pace
        self._runs: dict[str, _Run] = {}
        self._steps = self._tokens = 0
        self._due = 0.0
        self.info = ThinkerInfo(
            CONTEXT, CONTEXT * pace.requests, pace.requests, supports_json_schema=False
        )

    @property
    def busy(self) -> bool:
        """Whether anybody is to gain a token."""
        return bool(self._runs)

    def step(self, work: StepInput) -> StepResults:
        """A token for everybody, at the end of the step. Time that was lost is not made up for."""
        for request_id in work.cancellations:
            del self._runs[request_id]
        self._runs |= {request_id: _Run(request) for request_id, request in work.arrivals}
        self._due = max(time.monotonic(), self._due + self._pace.step_ms / 1e3)
        time.sleep(max(0.0, self._due - time.monotonic()))
        self._steps += 1
        for run in self._runs.values():
            run.made = min(run.made + 1, run.request.sampling.max_tokens)
        ready = [name for name in self._runs if name not in work.stalled]
        return [(name, self._output(name)) for name in ready]

    def counters(self) -> dict[str, float]:
        """What runs now, and totals since the start."""
        return {"running": len(self._runs), "steps": self._steps, "tokens": self._tokens}

    def close(self) -> None:
        """Forget every request."""
        self._runs.clear()

    def _output(self, name: str) -> ThinkerOutput:
        run, answer = self._runs[name], self._pace.answer
        tokens = tuple(answer[place % len(answer)] for place in range(run.sent, run.made))
        last = run.made == run.request.sampling.max_tokens
        if last:
            del self._runs[name]
        run.sent = run.made
        self._tokens += len(tokens)
        return ThinkerOutput(
            tokens,
            prompt_tokens=len(run.request.input_ids),
            cached_tokens=0,
            completion_tokens=run.made,
            finish_reason="length" if last else None,
        )


def open_worker(pace: ThinkerPace) -> SyntheticThinker:
    """The factory of the engine process."""
    return SyntheticThinker(pace)
