"""Training steps as CUDA graphs: the models are so small that most of a step is kernel launches.

A step is a function of a key, which determines what is computed (shapes, phases of the run), and of
tensors, whose shapes follow from the key. It must not read results on the host. The first step of a
key runs eagerly, which also warms up compiled code; the second is recorded, and later ones are
replayed. Without CUDA every step runs eagerly.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


@dataclass
class _RecordedStep(Generic[R]):
    """The inputs of a key, and its graph once it is recorded."""

    inputs: tuple[Tensor, ...]
    graph: torch.cuda.CUDAGraph | None = None
    result: R | None = None


class StepReplay(Generic[K, R]):
    """Run `step(key, inputs)`; all its random draws must come from `generator` (on the device).

    A result's tensors are overwritten by the next step.
    """

    def __init__(
        self,
        step: Callable[[K, tuple[Tensor, ...]], R],
        generator: torch.Generator,
        record: bool = True,
    ) -> None:
        self._step, self._generator = step, generator
        self._device = generator.device
        self._tapes: dict[K, _RecordedStep[R]] = {}
        self._recording = record and self._device.type == "cuda"
        if self._recording:
            self._stream = torch.cuda.Stream(self._device)
            self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, key: K, inputs: Sequence[Tensor]) -> R:
        """Run one step on host tensors."""
        if not self._recording:
            return self._step(key, tuple(one.to(self._device) for one in inputs))
        pinned = [one.pin_memory() for one in inputs]
        tape = self._tapes.get(key)
        if tape is None:
            there = tuple(one.to(self._device, non_blocking=True) for one in pinned)
            self._tapes[key] = _RecordedStep(there)
            return self._first(key, there)
        for place, new in zip(tape.inputs, pinned, strict=True):
            place.copy_(new, non_blocking=True)
        if tape.graph is None:
            tape.graph, tape.result = self._capture(key, tape.inputs)
        tape.graph.replay()
        assert tape.result is not None
        return tape.result

    def _first(self, key: K, inputs: tuple[Tensor, ...]) -> R:
        """Run a step on the stream of the recordings, because autograd remembers its stream."""
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            result = self._step(key, inputs)
        torch.cuda.current_stream(self._device).wait_stream(self._stream)
        return result

    def _capture(self, key: K, inputs: tuple[Tensor, ...]) -> tuple[torch.cuda.CUDAGraph, R]:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        # Other threads may copy at the same time.
        with torch.cuda.graph(
            graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
        ):
            result = self._step(key, inputs)
        return graph, result
