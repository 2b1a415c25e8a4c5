"""The packed flow model computes what the plain one does."""

from typing import cast

import pytest
import torch

from sglang_omni.models.ming.speech.cfm import RowSampling, Sampling
from sglang_omni.models.ming.speech.dit import ALL_ROWS, DiTBlock
from sglang_omni.models.ming.speech.packed_flow import PackedBlock, PackedCFM
from sglang_omni.models.ming.speech.talker import Talker
from tests.testing.golden import assert_close, cases, load_case


@pytest.mark.parametrize("rows", [ALL_ROWS, slice(-4, None)], ids=["all", "last"])
@torch.inference_mode()
def test_a_packed_block_equals_the_plain_one(talker: Talker, rows: slice) -> None:
    """The weights of its norms are not all one, so that a norm which is left out shows."""
    flow = talker.cfm.model
    block = cast(DiTBlock, flow.blocks[0])
    assert block.norm1.weight.std() > 0
    assert block.norm2.weight.std() > 0
    x = torch.randn(3, 11, flow.x_embedder.out_features, generator=torch.Generator().manual_seed(0))
    tables = flow.rotary_embed(11)
    rotary = torch.complex(*(table[:, None, None, ::2] for table in tables))
    assert_close(PackedBlock(block).forward(x, rotary, rows), block(x, tables, rows), 1e-5)


@pytest.mark.parametrize("name", cases("talker", "cfm"))
@torch.inference_mode()
def test_the_packed_sampler_equals_the_plain_one_at_every_step(talker: Talker, name: str) -> None:
    case = load_case(name)
    how = Sampling(case.info["cfg"], case.info["sigma"], case.info["temperature"])
    history, y0, noise = (case[key][None] for key in ("history", "y0", "sde_noise"))
    inputs = (case["cond"], history, y0, noise, how)
    packed = PackedCFM(talker.cfm).compute_trajectory(*inputs)
    plain = talker.cfm.compute_trajectory(*inputs)
    assert len(packed) == len(plain) == talker.cfm.steps + 1
    assert_close(torch.cat(packed), torch.cat(plain), 1e-5)


@pytest.mark.parametrize(("patch", "past"), [(1, 8), (2, 16), (4, 32)])
@torch.inference_mode()
def test_rows_of_any_patch_size_are_sampled_independently(
    talker: Talker, patch: int, past: int
) -> None:
    random, count = torch.Generator().manual_seed(patch), 3
    latent, condition = talker.config.latent_dim, talker.config.llm.hidden_size
    hidden, history, y0 = (
        torch.randn(count, *shape, generator=random)
        for shape in ((condition,), (past, latent), (patch, latent))
    )
    cfg = torch.tensor([0.0, 2.0, 3.0])
    packed = PackedCFM(talker.cfm).sample(
        hidden, history, y0, None, RowSampling(cfg, torch.zeros(count))
    )
    for row, strength in enumerate(cfg.tolist()):
        one = slice(row, row + 1)
        alone = talker.cfm.sample(hidden[one], history[one], y0[one], None, Sampling(strength))
        assert_close(packed[one], alone, 1e-5)
