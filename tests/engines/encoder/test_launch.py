"""What an encoder's process is told before it starts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.launch import build_environment
from sglang_omni.protocol.errors import ConfigError

CPU = EncoderSettings(Path("model"))
CUDA = EncoderSettings(Path("model"), device="cuda", dtype="bfloat16", tp_size=2, gpus=(2, 3))


def test_a_cpu_engine_is_chosen_by_environment() -> None:
    ranks = build_environment(replace(CPU, tp_size=2), threads=2)
    assert ranks["SGLANG_USE_CPU_ENGINE"] == "1"
    assert ranks["OMP_NUM_THREADS"] == "2"
    assert "SGLANG_NCCL_SO_PATH" in ranks


@pytest.mark.parametrize("images", [True, False])
def test_an_engine_without_sglang_is_told_nothing_of_it(images: bool) -> None:
    assert build_environment(replace(CPU, images=images), threads=1) == {"OMP_NUM_THREADS": "1"}


def test_a_gpu_engine_sees_its_own_gpus() -> None:
    variables = build_environment(CUDA, threads=1)
    assert variables["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert "SGLANG_USE_CPU_ENGINE" not in variables


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"images": False, "audio": False}, "images, audio"),
        ({"dtype": "int8"}, "int8"),
        ({"tp_size": 3}, "not 3"),
        ({"tp_size": 2, "images": False}, "one rank"),
        ({"device": "cuda", "tp_size": 2, "gpus": (0,)}, "1 GPUs"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        build_environment(replace(CPU, **changes), threads=1)
