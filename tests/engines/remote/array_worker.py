"""A worker that reads shared memory and writes some."""

from dataclasses import dataclass

from sglang_omni.engines.encoder.contract import AudioEncodeRequest
from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.engines.runtime.worker import StepInput, StepResults


@dataclass(frozen=True)
class Doubled:
    """The samples, each twice as large, are in the request's rows."""

    layout: Layout
    last: bool = True


class Doubler:
    """Doubles the samples of a request."""

    info = "doubler"
    busy = False

    def step(self, work: StepInput) -> StepResults:
        results: StepResults = []
        for request_id, request in work.arrivals:
            assert isinstance(request, AudioEncodeRequest)
            doubled = 2 * request.samples.read(request.layout)
            results.append((request_id, Doubled(request.rows.write(doubled))))
        return results

    def counters(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        pass


def make_doubler(settings: None) -> Doubler:
    """Build the worker."""
    return Doubler()
