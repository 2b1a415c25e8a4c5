"""Faster or slower speech at the same pitch, in a stream: FFmpeg's `atempo` (WSOLA)."""

from collections.abc import Iterator
from itertools import pairwise

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.filter import Graph

# What one filter does well: beyond twice it drops sound instead of blending it.
SLOWEST, FASTEST = 0.5, 2.0
# A filter gives what it makes of a frame when it has all of it, which is some windows into the next
# frame: the frames are short, so that little is held.
FRAMES_PER_S = 50


def tempo_chain(speed: float) -> list[float]:
    """Factors within what one filter does well, whose product is `speed` (> 0); none for 1."""
    factors = []
    while not SLOWEST <= speed <= FASTEST:
        step = FASTEST if speed > FASTEST else SLOWEST
        factors.append(step)
        speed /= step
    return [*factors, speed] if speed != 1 else factors


class TimeStretch:
    """Changes the tempo of a stream of float32 samples; joined, the output has 1 / `speed` of the
    input's length. How the input is cut into chunks makes no difference.

    The filter looks ahead by some hundredths of a second, so a short chunk may give nothing.
    """

    def __init__(self, sample_rate: int, speed: float) -> None:
        self._rate, self._samples = sample_rate, 0
        self._graph = _open(sample_rate, tempo_chain(speed))

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Feed float32 samples [n]; returns what is ready, [m]."""
        step = self._rate // FRAMES_PER_S
        for start in range(0, len(pcm), step):
            self._feed(pcm[start : start + step])
        return self._ready()

    def finish(self) -> np.ndarray:
        """What the filter still holds. Call once, after the last `push`."""
        if not self._samples:
            return np.zeros(0, np.float32)
        self._graph.push(None)
        return self._ready()

    def _feed(self, pcm: np.ndarray) -> None:
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(pcm[None]), "flt", "mono")
        frame.sample_rate, frame.pts = self._rate, self._samples
        self._samples += len(pcm)
        self._graph.push(frame)

    def _ready(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.float32), *self._pull()])

    def _pull(self) -> Iterator[np.ndarray]:
        while True:
            try:
                yield self._graph.pull().to_ndarray()[0]
            except (BlockingIOError, EOFError, av.error.BlockingIOError, av.error.EOFError):
                return


def _open(sample_rate: int, factors: list[float]) -> Graph:
    graph = Graph()
    source = graph.add_abuffer(sample_rate=sample_rate, format="flt", layout="mono")
    filters = [graph.add("atempo", f"{factor:.6f}") for factor in factors]
    sink = graph.add("abuffersink")
    chain = [source, *filters, sink]
    for upstream, downstream in pairwise(chain):
        upstream.link_to(downstream)
    graph.configure()
    return graph
