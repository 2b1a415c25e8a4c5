"""The GPUs of this machine, without CUDA: asking them takes no memory on any."""

from dataclasses import dataclass

import pynvml


@dataclass(frozen=True)
class Card:
    """One GPU by its number. `total_bytes` and `free_bytes` are of its memory."""

    index: int
    name: str
    total_bytes: int
    free_bytes: int


def cards() -> tuple[Card, ...]:
    """Every GPU that the driver names, in its order; none without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_card(index) for index in range(pynvml.nvmlDeviceGetCount()))
    finally:
        pynvml.nvmlShutdown()


def _card(index: int) -> Card:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Card(index, pynvml.nvmlDeviceGetName(handle), int(memory.total), int(memory.free))
