"""What SGLang is told, from the thinker's settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment, build_server_args
from sglang_omni.protocol.errors import ConfigError

CPU = ThinkerSettings(Path("model"))
PORT = 20_000
CUDA = ThinkerSettings(Path("model"), device="cuda", dtype="bfloat16", gpus=(2, 3), tp_size=2)


def test_unset_values_are_left_to_sglang() -> None:
    assert None not in build_server_args(CUDA, PORT).values()
    assert build_server_args(CUDA, PORT)["nccl_port"] == PORT
    assert "mem_fraction_static" not in build_server_args(CUDA, PORT)
    assert build_server_args(CPU, PORT)["attention_backend"] == "torch_native"


def test_given_server_arguments_win() -> None:
    settings = ThinkerSettings(Path("model"), server_args=(("attention_backend", "triton"),))
    assert build_server_args(settings, PORT)["attention_backend"] == "triton"


def test_deterministic_sampling_without_a_gpu_is_refused() -> None:
    with pytest.raises(ConfigError, match="GPU"):
        build_server_args(ThinkerSettings(Path("model"), deterministic=True), PORT)


SINGLE_GPU = replace(CUDA, gpus=(2,), tp_size=1)


def test_prefills_are_captured_on_one_gpu() -> None:
    arguments = build_server_args(SINGLE_GPU, PORT)
    assert arguments["cuda_graph_backend_prefill"] == "breakable"
    assert arguments["cuda_graph_bs_prefill"] == sorted(arguments["cuda_graph_bs_prefill"])


@pytest.mark.parametrize(
    "settings",
    [
        CPU,
        CUDA,
        replace(SINGLE_GPU, deterministic=True),
        replace(SINGLE_GPU, server_args=(("disable_cuda_graph", True),)),
        replace(SINGLE_GPU, server_args=(("disable_prefill_cuda_graph", True),)),
        replace(SINGLE_GPU, server_args=(("cuda_graph_backend_prefill", "disabled"),)),
    ],
)
def test_prefills_are_read_eagerly(settings: ThinkerSettings) -> None:
    assert build_server_args(settings, PORT)["cuda_graph_backend_prefill"] == "disabled"


def test_the_cpu_engine_is_chosen_by_environment() -> None:
    alone = build_environment(CPU, threads=2)
    assert alone["SGLANG_USE_CPU_ENGINE"] == "1"
    assert alone["OMP_NUM_THREADS"] == "2"
    assert "SGLANG_CPU_OMP_THREADS_BIND" not in alone
    two = build_environment(ThinkerSettings(Path("model"), tp_size=2), threads=1)
    assert two["SGLANG_CPU_OMP_THREADS_BIND"] == "0|1"


def test_a_gpu_engine_sees_its_own_gpus() -> None:
    variables = build_environment(CUDA, threads=1)
    assert variables["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert "SGLANG_USE_CPU_ENGINE" not in variables
    assert variables["SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"] == "false"


def test_models_that_are_not_served_are_not_imported() -> None:
    disabled = build_environment(CUDA, threads=1)["SGLANG_DISABLED_MODEL_ARCHS"].split(",")
    assert "bailing_moe" in disabled
    assert len(disabled) > 100
