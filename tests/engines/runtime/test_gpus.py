"""GPUs are those that CUDA would see, by the numbers that it would give them."""

from types import SimpleNamespace
from typing import Any

import pytest

from sglang_omni.engines.runtime import gpus as module
from sglang_omni.engines.runtime.gpus import (
    VISIBLE_DEVICES_VARIABLE,
    Gpu,
    list_visible_gpus,
    visible_devices,
)
from sglang_omni.protocol.errors import ConfigError

NAMES = ("H200", "H100", "A100")


class Driver:
    """NVML of a machine with three GPUs, which are their numbers."""

    NVMLError = RuntimeError

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return len(NAMES)

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        if number >= len(NAMES):
            raise self.NVMLError(number)
        return number

    def nvmlDeviceGetHandleByUUID(self, name: str) -> int:
        if not name.startswith("GPU-"):
            raise self.NVMLError(name)
        return int(name.removeprefix("GPU-"))

    def nvmlDeviceGetName(self, handle: int) -> str:
        return NAMES[handle]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(total=100 + handle, free=handle)

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        if NAMES[handle] == "H200":
            raise self.NVMLError("an old driver does not tell it")
        return (8, 0) if NAMES[handle] == "A100" else (9, 0)


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (None, NAMES),
        ("2,0", ("A100", "H200")),
        (" GPU-1 ,", ("H100",)),
        ("", ()),
        ("-1", ()),
        ("1,9,0", ("H100",)),
    ],
)
def test_a_mask_chooses_and_orders_gpus(
    mask: str | None, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "pynvml", Driver())
    monkeypatch.delenv(VISIBLE_DEVICES_VARIABLE, raising=False)
    if mask is not None:
        monkeypatch.setenv(VISIBLE_DEVICES_VARIABLE, mask)
    assert [(gpu.index, gpu.name) for gpu in list_visible_gpus()] == list(enumerate(names))
    if mask == "2,0":
        assert list_visible_gpus()[0] == Gpu(0, "A100", 102, 2, (8, 0))
        assert list_visible_gpus()[1].capability is None


def test_a_process_sees_the_gpus_of_its_numbers() -> None:
    assert visible_devices((1, 0), None) == "1,0"
    assert visible_devices((1, 0), "4,5,6") == "5,4"
    assert visible_devices((0,), "GPU-7") == "GPU-7"
    with pytest.raises(ConfigError, match="there is no GPU 2: CUDA_VISIBLE_DEVICES is '4,5'"):
        visible_devices((2,), "4,5")
