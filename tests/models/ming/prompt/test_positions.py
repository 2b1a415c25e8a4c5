"""Positions follow the released model for every prompt and synthetic sequence."""

import pytest
import torch

from sglang_omni.models.ming.thinker.hf_config import MingConfig
from tests.models.ming.thinker.prompts import position_table
from tests.testing.golden import TINY, Case, cases, load_case

CASES = cases("positions")


@pytest.fixture(scope="module")
def config() -> MingConfig:
    return MingConfig.from_pretrained(TINY)


@pytest.mark.parametrize("name", CASES)
def test_positions_and_delta_agree(name: str, config: MingConfig) -> None:
    case = load_case(name)
    if "attention_mask" in case.tensors:
        check_padded_batch(case, config)
        return
    table, delta = position_table(case, config)
    case.check("position_ids", table)
    case.check("rope_delta", torch.tensor([delta]))


def check_padded_batch(case: Case, config: MingConfig) -> None:
    """Each row of a padded batch has the positions of its unpadded prompt; pads are not ours."""
    for row, mask in enumerate(case["attention_mask"].bool()):
        grid = case["image_grid_thw"][row : row + 1]
        tensors = {"input_ids": case["input_ids"][row][mask], "image_grid_thw": grid}
        table, delta = position_table(Case(case.name, case.info, tensors), config)
        assert torch.equal(table, case["position_ids"][:, row, mask])
        # The stored delta counts from the padded length.
        assert delta - int((~mask).sum()) == int(case["rope_delta"][row])
