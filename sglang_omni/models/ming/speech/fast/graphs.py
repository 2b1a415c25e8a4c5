"""CUDA graphs by batch size, and the small copies around them."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from sglang_omni.protocol.errors import ConfigError

T = TypeVar("T")

BATCH_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)
"""Batch sizes that have a graph."""
WARMUP_RUNS = 2
MAX_UPLOADS_IN_FLIGHT = 4


def select_bucket(count: int, sizes: Sequence[int]) -> int:
    """The smallest of the ascending `sizes` that holds `count`.

    Raises `ConfigError` if none does: a shape without a graph is an error, never an eager run.
    """
    for size in sizes:
        if count <= size:
            return size
    raise ConfigError(f"no graph holds {count}; the largest is for {sizes[-1]}")


class Graph(Generic[T]):
    """A captured sequence of kernels; `output` is what the captured call returned."""

    def __init__(self, run: Callable[[], T], pool: Any) -> None:
        with torch.inference_mode():
            for _ in range(WARMUP_RUNS):
                run()
            torch.cuda.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, pool=pool, stream=torch.cuda.current_stream()):
                self.output = run()

    def replay(self) -> None:
        """Queue the kernels on the current stream."""
        self._graph.replay()


class HostUpload:
    """Integers on their way to a fixed place on the device, several uploads in flight at once."""

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.device = torch.zeros(shape, dtype=torch.int64, device=device)
        self._host = [
            torch.zeros(shape, dtype=torch.int64).pin_memory() for _ in range(MAX_UPLOADS_IN_FLIGHT)
        ]
        self._copied = [torch.cuda.Event() for _ in range(MAX_UPLOADS_IN_FLIGHT)]
        self._turn = 0

    def send(self, values: np.ndarray) -> None:
        """Queue a copy of `values` to the device, on the current stream."""
        turn = self._turn = (self._turn + 1) % MAX_UPLOADS_IN_FLIGHT
        self._copied[turn].synchronize()
        self._host[turn].numpy()[...] = values
        self.device.copy_(self._host[turn], non_blocking=True)
        self._copied[turn].record()


def allocate_pinned(*shape: int) -> Tensor:
    """Pinned float32 memory."""
    return torch.zeros(shape, dtype=torch.float32).pin_memory()
