"""The GPUs that this process may use: read from the driver, without CUDA.

Cards have the numbers that CUDA gives them here: where `CUDA_VISIBLE_DEVICES` names some, their
places in that list.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from sglang_omni.protocol.errors import ConfigError

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Gpu:
    """A GPU and its memory, in bytes."""

    index: int
    name: str
    total_bytes: int
    free_bytes: int


def visible_gpus() -> tuple[Gpu, ...]:
    """Every GPU that may be used, in CUDA's order; none without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        mask = os.environ.get(VISIBLE)
        if mask is None:
            mask = ",".join(map(str, range(pynvml.nvmlDeviceGetCount())))
        return tuple(_card(index, handle) for index, handle in enumerate(_handles(mask)))
    finally:
        pynvml.nvmlShutdown()


def visible_devices(numbers: Sequence[int], mask: str | None) -> str:
    """What makes these cards, by their numbers under `mask`, the only ones of a process.

    Raises `ConfigError` for a card that the mask has not.
    """
    if mask is None:
        return ",".join(map(str, numbers))
    there = entries(mask)
    for number in numbers:
        if number >= len(there):
            raise ConfigError(f"there is no card {number}: {VISIBLE} is {mask!r}")
    return ",".join(there[number] for number in numbers)


def entries(mask: str) -> list[str]:
    """The numbers and UUIDs in a mask."""
    return [entry.strip() for entry in mask.split(",") if entry.strip()]


def _handles(mask: str) -> Iterator[Any]:
    """Those of a mask up to the first that is none, such as -1, where CUDA stops reading, too."""
    for entry in entries(mask):
        try:
            if entry.isdecimal():
                yield pynvml.nvmlDeviceGetHandleByIndex(int(entry))
            else:
                yield pynvml.nvmlDeviceGetHandleByUUID(entry)
        except pynvml.NVMLError:
            return


def _card(index: int, handle: Any) -> Gpu:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(index, pynvml.nvmlDeviceGetName(handle), int(memory.total), int(memory.free))
