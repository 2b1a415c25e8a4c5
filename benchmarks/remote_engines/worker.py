"""An engine that computes nothing: it answers with a chunk of speech, or with features."""

from dataclasses import dataclass

import numpy as np

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.runtime.worker import StepInput, StepResults

CHUNK_SAMPLES = 14_112
PIXELS = (1, 1024, 1024, 3)
FEATURES = (1024, 4096)
FACTORY = f"{__name__}:open_worker"


@dataclass(frozen=True)
class ChunkRequest:
    """Ask for one chunk of speech."""


@dataclass(frozen=True)
class FeatureRequest:
    """Ask for the features of the image in `pixels`, in `rows`."""

    pixels: SharedArray
    layout: Layout
    rows: SharedArray


@dataclass(frozen=True)
class Answer:
    """A chunk, or the layout of features."""

    pcm: np.ndarray | None = None
    layout: Layout | None = None
    last: bool = True


class Worker:
    """Answers without computing anything."""

    info = None
    busy = False

    def __init__(self) -> None:
        random = np.random.default_rng(1)
        self._pcm = random.random(CHUNK_SAMPLES, np.float32)
        self._features = random.integers(0, 65_535, FEATURES, np.uint16)

    def step(self, work: StepInput) -> StepResults:
        """Answer what has arrived."""
        return [(request_id, self._answer(request)) for request_id, request in work.arrivals]

    def _answer(self, request: ChunkRequest | FeatureRequest) -> Answer:
        if isinstance(request, ChunkRequest):
            return Answer(pcm=self._pcm)
        assert request.pixels.read(request.layout).shape == PIXELS
        return Answer(layout=request.rows.write(self._features))

    def counters(self) -> dict[str, float]:
        """Return nothing."""
        return {}

    def close(self) -> None:
        """Do nothing."""


def open_worker(settings: None) -> Worker:
    """Build the worker."""
    return Worker()
