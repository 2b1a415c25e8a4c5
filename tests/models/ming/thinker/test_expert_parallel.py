"""Ranks that share experts add up to the whole layer, whatever the layout."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from sglang_omni.models.ming.thinker.loading import Destination, find_destination
from sglang_omni.models.ming.thinker.routing import mask_remote_experts
from tests.testing.golden import TINY

PROGRAM = Path(__file__).with_name("run_ranks.py")
LAYER = "model.model.layers.1.mlp."
# Of 16 routed experts of 48 columns; on one rank the shared one is the 17th.
STACKS = {
    "1/1": (17, 96, 192),
    "2/1": (17, 48, 192),
    "2/2": (8, 96, 192),
    "4/2": (8, 48, 192),
    "4/4": (4, 96, 192),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    target = tmp_path_factory.mktemp("ranks") / "sums.pt"
    paths = {"PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(TINY), str(target)],
        env={**os.environ, **build_environment(ThinkerSettings(TINY), threads=1), **paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = torch.load(target)
    return found


@pytest.mark.parametrize("layout", STACKS)
def test_the_ranks_of_a_layout_add_up_to_the_layer(layout: str, ran: dict[str, Any]) -> None:
    total, stack = ran[layout]
    assert stack == STACKS[layout]
    torch.testing.assert_close(total, ran["1/1"][0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("part", ["experts.15.up_proj", "shared_experts.gate_proj"])
def test_a_rank_misses_tensors_that_other_ranks_keep(part: str, ran: dict[str, Any]) -> None:
    name = f"{LAYER}{part}.weight"
    assert f"{name!r} is missing (1 missing" in ran[name]


def test_fewer_experts_than_a_token_uses_are_refused_on_a_cpu(ran: dict[str, Any]) -> None:
    assert "2 are fewer than 4; lower thinker.ep_size" in ran["8/8"]


def test_a_shared_expert_of_its_own_is_loaded_as_an_mlp() -> None:
    def find(part: str) -> Destination:
        return find_destination(f"{LAYER}{part}_proj.weight", 16, stacks_shared=False)

    assert find("shared_experts.gate") == Destination(
        LAYER + "shared_experts.gate_up_proj.weight", 0
    )
    assert find("shared_experts.up") == Destination(LAYER + "shared_experts.gate_up_proj.weight", 1)
    down = LAYER + "shared_experts.down_proj.weight"
    assert find("shared_experts.down") == Destination(down)
    # The routed ones keep their numbers; the rank's loader drops those of other ranks.
    assert find("experts.15.up") == Destination(LAYER + "experts.w13_weight", "w3", 15)


@pytest.mark.parametrize(("experts", "top_k"), [(8, 4), (4, 4), (32, 8)])
def test_experts_of_other_ranks_add_nothing(experts: int, top_k: int) -> None:
    generator = torch.Generator().manual_seed(0)
    chosen = torch.rand(64, 3 * experts, generator=generator).topk(top_k).indices.int()
    ids = torch.where(chosen < experts, chosen, -1)
    weights = torch.rand(64, top_k, generator=generator)
    new_weights, new_ids = mask_remote_experts(weights, ids, experts)
    is_local = ids >= 0
    assert is_local.any()
    assert not is_local.all()
    assert torch.equal(new_ids[is_local], ids[is_local])
    assert torch.equal(new_weights, torch.where(is_local, weights, 0.0))
    # SGLang's plain product counts an expert once in each token.
    assert all(len(set(row)) == top_k for row in new_ids.tolist())
    assert new_ids.min() >= 0
    assert new_ids.max() < experts
    assert new_ids.dtype == ids.dtype
