"""CUDA graphs by batch size, and host-to-device uploads."""

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
    """Return the smallest of the ascending `sizes` that holds `count`.

    Raises:
        ConfigError: No size does. A shape without a graph is an error; nothing runs eagerly.
    """
    for size in sizes:
        if count <= size:
            return size
    raise ConfigError(f"no CUDA graph for size {count}; the largest has size {sizes[-1]}")


class Graph(Generic[T]):
    """A captured CUDA graph; `output` is the return value of the captured call."""

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
    """Upload integers to a fixed device tensor; several uploads can be in flight."""

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.device = torch.zeros(shape, dtype=torch.int64, device=device)
        self._host = [
            torch.zeros(shape, dtype=torch.int64).pin_memory() for _ in range(MAX_UPLOADS_IN_FLIGHT)
        ]
        self._copied = [torch.cuda.Event() for _ in range(MAX_UPLOADS_IN_FLIGHT)]
        self._buffer = 0

    def send(self, values: np.ndarray) -> None:
        """Queue a copy of `values` to the device, on the current stream."""
        buffer = self._buffer = (self._buffer + 1) % MAX_UPLOADS_IN_FLIGHT
        self._copied[buffer].synchronize()
        self._host[buffer].numpy()[...] = values
        self.device.copy_(self._host[buffer], non_blocking=True)
        self._copied[buffer].record()


def allocate_pinned(*shape: int) -> Tensor:
    """Return zeroed float32 tensors in pinned host memory."""
    return torch.zeros(shape, dtype=torch.float32).pin_memory()
