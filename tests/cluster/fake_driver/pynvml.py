"""Stands for NVIDIA's driver library on the second machine: it has two GPUs that do not exist.

Only what `list_visible_gpus` asks for is here.
"""

from dataclasses import dataclass

NVML_ERROR_DRIVER_NOT_LOADED = 9
GB = 10**9
SIZES = (2 * GB, 24 * GB)


class NVMLError(Exception):
    """NVML's error."""


@dataclass(frozen=True)
class Memory:
    """A GPU's memory in bytes."""

    total: int
    free: int


def nvmlInit() -> None:
    """Do nothing."""


def nvmlShutdown() -> None:
    """Do nothing."""


def nvmlDeviceGetCount() -> int:
    """Return the number of GPUs."""
    return len(SIZES)


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    """Return a handle."""
    if index >= len(SIZES):
        raise NVMLError(index)
    return index


def nvmlDeviceGetName(handle: int) -> str:
    """Return a name."""
    return f"pretended GPU {handle}"


def nvmlDeviceGetMemoryInfo(handle: int) -> Memory:
    """Return the memory."""
    return Memory(SIZES[handle], SIZES[handle])


def nvmlDeviceGetCudaComputeCapability(handle: int) -> tuple[int, int]:
    """Return that of a Hopper GPU."""
    return 9, 0
