"""Engines are placed, or refused, before anything is loaded."""

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import Gpu, list_visible_gpus
from sglang_omni.entrypoints.startup import placement as startup
from sglang_omni.protocol.errors import StartupError
from tests.testing.golden import TINY

GB = 10**9


def config(**values: object) -> Config:
    return load_config(None, {"model_path": str(TINY), "device": "cuda", **values})


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuple(Gpu(index, "NVIDIA H200", 150 * GB, 149 * GB) for index in range(2))
    monkeypatch.setattr(startup, "list_visible_gpus", lambda: found)


@pytest.mark.usefixtures("two_gpus")
def test_auto_tells_its_plan_and_gives_every_engine_its_gpu() -> None:
    placed, shown = startup.apply_placement(config(placement="auto"), TINY)
    assert (placed.thinker.tp_size, placed.thinker.gpus) == (1, (0,))
    assert placed.talker.gpus == placed.audio_encoder.gpus == (1,)
    assert placed.image_encoder.gpus == (1,)
    assert "thinker in bfloat16 on 1 rank(s)" in shown
    assert "1: NVIDIA H200" in shown


@pytest.mark.usefixtures("two_gpus")
def test_by_hand_nothing_is_moved() -> None:
    assert startup.apply_placement(config(), TINY) == (config(), "")


@pytest.mark.parametrize("placement", ["auto", "manual"])
def test_what_cannot_fit_is_refused(placement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        startup, "list_visible_gpus", lambda: (Gpu(0, "small", GB // 1000, GB // 1000),)
    )
    with pytest.raises(StartupError, match="does not fit"):
        startup.apply_placement(config(placement=placement), TINY)


def test_a_cpu_has_nothing_to_place() -> None:
    on_a_cpu = config(device="cpu", placement="auto")
    assert startup.apply_placement(on_a_cpu, TINY) == (on_a_cpu, "")


def test_without_a_driver_no_card_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def no_driver() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    monkeypatch.setattr(pynvml, "nvmlInit", no_driver)
    assert list_visible_gpus() == ()
