"""How the thinker may be split over ranks; everything else is refused by name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment, build_server_args
from sglang_omni.engines.thinker.parallelism import check_parallelism, get_ep_size
from sglang_omni.protocol.errors import ConfigError

FOUR = ThinkerSettings(Path("model"), tp_size=4)
PORT = 20_000


def with_args(settings: ThinkerSettings, **arguments: Any) -> ThinkerSettings:
    return replace(settings, server_args=tuple(arguments.items()))


@pytest.mark.parametrize("ep_size", [1, 2, 4])
def test_groups_of_experts_divide_the_ranks(ep_size: int) -> None:
    settings = replace(FOUR, ep_size=ep_size)
    assert build_server_args(settings, PORT)["ep_size"] == ep_size


def test_sglangs_own_argument_wins() -> None:
    settings = with_args(replace(FOUR, ep_size=2), ep_size=4)
    assert get_ep_size(settings) == 4
    assert build_server_args(settings, PORT)["ep_size"] == 4


@pytest.mark.parametrize("settings", [replace(FOUR, ep_size=3), with_args(FOUR, ep_size=8)])
def test_groups_that_do_not_divide_the_ranks_are_refused(settings: ThinkerSettings) -> None:
    with pytest.raises(ConfigError, match=r"thinker\.ep_size \(\d\) must divide .*tp_size \(4\)"):
        check_parallelism(settings)


REFUSED: dict[str, Any] = {
    "enable_dp_attention": True,
    "dp_size": 2,
    "enable_dp_lm_head": True,
    "moe_a2a_backend": "deepep",
    "moe_dense_tp_size": 1,
    "moe_dp_size": 2,
    "attn_cp_size": 2,
    "dcp_size": 2,
    "pp_size": 2,
    "enable_eplb": True,
    "ep_num_redundant_experts": 2,
    "init_expert_location": "map.json",
    "elastic_ep_backend": "mooncake",
    "enable_deepep_waterfill": True,
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("ep_size", [1, 2])
def test_other_ways_to_split_are_refused_by_name(name: str, ep_size: int) -> None:
    settings = with_args(replace(FOUR, ep_size=ep_size), **{name: REFUSED[name]})
    # The environment is built before any process starts.
    for build in (lambda: build_environment(settings, 1), lambda: build_server_args(settings, 1)):
        with pytest.raises(ConfigError, match=rf"thinker\.server_args: {name} is not supported: "):
            build()


@pytest.mark.parametrize(
    "arguments",
    [
        {"enable_dp_attention": False, "dp_size": 1, "moe_a2a_backend": "none"},
        {"moe_dense_tp_size": None, "ep_num_redundant_experts": 0},
        {"moe_runner_backend": "triton"},
    ],
)
def test_neutral_values_are_accepted(arguments: dict[str, Any]) -> None:
    check_parallelism(with_args(replace(FOUR, ep_size=2), **arguments))


def test_other_expert_kernels_are_refused_with_expert_parallelism_only() -> None:
    check_parallelism(with_args(FOUR, moe_runner_backend="cutlass"))
    with pytest.raises(ConfigError, match="moe_runner_backend cutlass"):
        check_parallelism(with_args(replace(FOUR, ep_size=2), moe_runner_backend="cutlass"))
