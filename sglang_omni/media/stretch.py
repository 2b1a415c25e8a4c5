"""Change the tempo of a stream at the same pitch, with FFmpeg's `atempo` (WSOLA)."""

from collections.abc import Iterator
from itertools import pairwise

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.filter import Graph

from sglang_omni.media.tempo import split_speed

# A filter outputs a frame when it has processed all of it, which is some windows into the next one.
# Short frames keep the delay small.
FRAMES_PER_S = 50


class TimeStretch:
    """Change the tempo of a stream of float32 samples.

    The output has 1 / `speed` of the input's length and does not depend on how the input is split
    into chunks. The filter looks ahead some tens of milliseconds, so a short chunk may give
    nothing.
    """

    def __init__(self, sample_rate: int, speed: float) -> None:
        self._rate, self._samples = sample_rate, 0
        self._graph = _build_graph(sample_rate, split_speed(speed))

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Take float32 samples [n] and return those that are ready, [m]."""
        step = self._rate // FRAMES_PER_S
        for start in range(0, len(pcm), step):
            self._feed(pcm[start : start + step])
        return self._take_output()

    def finish(self) -> np.ndarray:
        """Return the samples that the filter still holds. Call once, after the last `push`."""
        if not self._samples:
            return np.zeros(0, np.float32)
        self._graph.push(None)
        return self._take_output()

    def _feed(self, pcm: np.ndarray) -> None:
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(pcm[None]), "flt", "mono")
        frame.sample_rate, frame.pts = self._rate, self._samples
        self._samples += len(pcm)
        self._graph.push(frame)

    def _take_output(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.float32), *self._pull_frames()])

    def _pull_frames(self) -> Iterator[np.ndarray]:
        while True:
            try:
                yield self._graph.pull().to_ndarray()[0]
            except (BlockingIOError, EOFError, av.error.BlockingIOError, av.error.EOFError):
                return


def _build_graph(sample_rate: int, factors: list[float]) -> Graph:
    graph = Graph()
    source = graph.add_abuffer(sample_rate=sample_rate, format="flt", layout="mono")
    filters = [graph.add("atempo", f"{factor:.6f}") for factor in factors]
    sink = graph.add("abuffersink")
    chain = [source, *filters, sink]
    for upstream, downstream in pairwise(chain):
        upstream.link_to(downstream)
    graph.configure()
    return graph
