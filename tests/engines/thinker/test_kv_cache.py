"""Which forms of the KV cache are passed to SGLang, and which are refused before it starts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.kv_cache import FP8, check_kv_cache
from sglang_omni.engines.thinker.launch import build_environment, build_server_args
from sglang_omni.protocol.errors import ConfigError

GPU = ThinkerSettings(Path("model"), device="cuda", dtype="bfloat16")
IN_FP8 = replace(GPU, kv_cache_dtype=FP8)
PORT = 20_000


def with_args(settings: ThinkerSettings, **arguments: Any) -> ThinkerSettings:
    return replace(settings, server_args=tuple(arguments.items()))


def test_it_becomes_sglangs_argument() -> None:
    assert build_server_args(GPU, PORT)["kv_cache_dtype"] == "auto"
    assert build_server_args(IN_FP8, PORT)["kv_cache_dtype"] == "fp8_e4m3"


@pytest.mark.parametrize("backend", ["fa3", "flashinfer", "triton"])
def test_back_ends_that_read_fp8_are_accepted(backend: str) -> None:
    settings = with_args(IN_FP8, attention_backend=backend)
    assert build_server_args(settings, PORT)["attention_backend"] == backend


@pytest.mark.parametrize(
    "name", ["attention_backend", "prefill_attention_backend", "decode_attention_backend"]
)
@pytest.mark.parametrize("backend", ["fa4", "torch_native", "flex_attention"])
def test_other_back_ends_are_refused_by_name(name: str, backend: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} {backend} cannot read .* use fa3, flashinfer"):
        check_kv_cache(with_args(IN_FP8, **{name: backend}))
    check_kv_cache(with_args(GPU, **{name: backend}))


def test_a_cpu_has_no_cache_in_fp8() -> None:
    on_cpu = ThinkerSettings(Path("model"), kv_cache_dtype=FP8)
    with pytest.raises(ConfigError, match=r"thinker\.kv_cache_dtype fp8_e4m3 needs a GPU"):
        build_environment(on_cpu, threads=1)


def test_the_size_of_a_token_is_not_set_where_the_placement_does_not_see_it() -> None:
    with pytest.raises(ConfigError, match=r"set thinker\.kv_cache_dtype instead"):
        check_kv_cache(with_args(GPU, kv_cache_dtype="fp8_e5m2"))


def test_scales_that_the_model_would_not_load_are_refused() -> None:
    with pytest.raises(ConfigError, match="stores keys and values without scales"):
        check_kv_cache(with_args(IN_FP8, quantization_param_path="scales.json"))


def test_sglang_takes_the_same_back_ends_and_types() -> None:
    from sglang.srt.server_args import ATTENTION_BACKEND_CHOICES, ServerArgs

    assert {"fa3", "flashinfer", "triton"} <= set(ATTENTION_BACKEND_CHOICES)
    assert ServerArgs.__dataclass_fields__["kv_cache_dtype"].default == "auto"
