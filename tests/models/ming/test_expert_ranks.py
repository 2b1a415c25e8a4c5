"""Which checkpoints' experts groups of ranks can share."""

import json
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.models.ming.expert_ranks import check_expert_ranks
from sglang_omni.models.ming.thinker.fp8_layout import QUANTIZATION_CONFIG
from sglang_omni.models.ming.thinker.int4.layout import build_int4_config
from sglang_omni.protocol.errors import CheckpointError, ConfigError
from sglang_omni.serving.thinker_config import build_thinker_spec
from tests.testing.golden import TINY
from tests.testing.toy_family import ToyFamily


def write_config(folder: Path, **values: Any) -> Path:
    config = {"llm_config": {"num_experts": 256}, **values}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.mark.parametrize("quantization", [None, QUANTIZATION_CONFIG])
def test_groups_divide_the_experts(tmp_path: Path, quantization: dict[str, Any] | None) -> None:
    extra = {} if quantization is None else {"quantization_config": quantization}
    write_config(tmp_path, **extra)
    for ep_size in (1, 2, 8):
        check_expert_ranks(tmp_path, ep_size)
    with pytest.raises(ConfigError, match=r"thinker\.ep_size \(3\) must divide the 256"):
        check_expert_ranks(tmp_path, 3)


def test_experts_in_four_bits_are_refused(tmp_path: Path) -> None:
    write_config(tmp_path, quantization_config=build_int4_config(symmetric=True))
    check_expert_ranks(tmp_path, 1)
    with pytest.raises(ConfigError, match=r"thinker\.ep_size: experts in four bits"):
        check_expert_ranks(tmp_path, 2)


def test_a_configuration_without_experts_is_named(tmp_path: Path) -> None:
    write_config(tmp_path, llm_config={})
    with pytest.raises(CheckpointError, match="num_experts"):
        check_expert_ranks(tmp_path, 2)


def test_a_family_without_expert_parallelism_says_so() -> None:
    ToyFamily().check_expert_ranks(TINY, 1)
    with pytest.raises(ConfigError, match=r"thinker\.ep_size"):
        ToyFamily().check_expert_ranks(TINY, 2)


def test_the_server_checks_before_it_starts_an_engine() -> None:
    given: dict[str, Any] = {"device": "cpu", "thinker.tp_size": 2}
    settings = build_thinker_spec(load_config(None, given | {"thinker.ep_size": 2}), TINY).settings
    assert (settings.tp_size, settings.ep_size) == (2, 2)
    with pytest.raises(ConfigError, match=r"thinker\.ep_size \(3\) must divide the 16"):
        build_thinker_spec(load_config(None, given | {"thinker.ep_size": 3}), TINY)
    refused = given | {"thinker.server_args": {"enable_dp_attention": True, "dp_size": 2}}
    with pytest.raises(ConfigError, match="enable_dp_attention"):
        build_thinker_spec(load_config(None, refused), TINY)
