"""The GPUs that this process may use, read from the driver (NVML) without CUDA.

GPUs have the indices that CUDA gives them in this process: if `CUDA_VISIBLE_DEVICES` is set, their
positions in that list.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from sglang_omni.protocol.errors import ConfigError

VISIBLE_DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Gpu:
    """A GPU and its memory in bytes.

    `capability` is its CUDA compute capability; None if the driver does not tell it.
    """

    index: int
    name: str
    total_bytes: int
    free_bytes: int
    capability: tuple[int, int] | None = None


def list_visible_gpus() -> tuple[Gpu, ...]:
    """Return every GPU that this process may use, in CUDA's order; none without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        mask = os.environ.get(VISIBLE_DEVICES_VARIABLE)
        if mask is None:
            mask = ",".join(map(str, range(pynvml.nvmlDeviceGetCount())))
        return tuple(_read_gpu(index, handle) for index, handle in enumerate(_iter_handles(mask)))
    finally:
        pynvml.nvmlShutdown()


def visible_devices(indices: Sequence[int], mask: str | None) -> str:
    """Return the `CUDA_VISIBLE_DEVICES` that restricts a process to these GPUs.

    Args:
        indices: Indices of GPUs in this process, so under `mask`.
        mask: The server's own `CUDA_VISIBLE_DEVICES`; None if it is not set.

    Raises:
        ConfigError: The mask has no GPU of such an index.
    """
    if mask is None:
        return ",".join(map(str, indices))
    devices = parse_mask(mask)
    for index in indices:
        if index >= len(devices):
            raise ConfigError(f"there is no GPU {index}: {VISIBLE_DEVICES_VARIABLE} is {mask!r}")
    return ",".join(devices[index] for index in indices)


def parse_mask(mask: str) -> list[str]:
    """Return the indices and UUIDs in a mask."""
    return [entry.strip() for entry in mask.split(",") if entry.strip()]


def _iter_handles(mask: str) -> Iterator[Any]:
    """Yield the NVML handles of a mask, up to the first invalid entry, such as -1, as CUDA does."""
    for entry in parse_mask(mask):
        try:
            if entry.isdecimal():
                yield pynvml.nvmlDeviceGetHandleByIndex(int(entry))
            else:
                yield pynvml.nvmlDeviceGetHandleByUUID(entry)
        except pynvml.NVMLError:
            return


def _read_gpu(index: int, handle: Any) -> Gpu:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    name = pynvml.nvmlDeviceGetName(handle)
    return Gpu(index, name, int(memory.total), int(memory.free), _read_capability(handle))


def _read_capability(handle: Any) -> tuple[int, int] | None:
    try:
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    except pynvml.NVMLError:
        return None
    return int(major), int(minor)
