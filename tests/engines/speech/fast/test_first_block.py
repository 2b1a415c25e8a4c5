"""What the first block of a flow keeps from step to step, against computing it all again."""

import pytest
import torch

from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech import dit
from sglang_omni.models.ming.speech.fast.layers import FirstBlock, run_flow_blocks
from sglang_omni.models.ming.speech.fast.ops import FusedOps, LibraryOps
from sglang_omni.models.ming.speech.fast.packed import pack_flow
from tests.engines.speech.fast.conftest import Draw
from tests.testing.golden import assert_close

FRESH = 4


@pytest.mark.parametrize("form", ["fused", "library"])
def test_only_the_head_and_the_state_change_between_steps(
    stack: dit.BlockStack, draw: Draw, device: torch.device, tolerance: float, form: str
) -> None:
    flow = pack_flow(stack, 37)
    ops = FusedOps(Workspace(1 << 18, device)) if form == "fused" else LibraryOps()
    first, tokens = FirstBlock(flow, ops, FRESH), draw(4, 37, 64)
    for _ in range(3):
        tokens[:, 0], tokens[:, -FRESH:] = draw(4, 64), draw(4, FRESH, 64)
        rows = slice(-FRESH, None)
        kept = run_flow_blocks(flow, tokens.clone(), rows, ops, ops, first)
        anew = run_flow_blocks(flow, tokens.clone(), rows, ops, ops)
        assert_close(kept.x.float(), anew.x.float(), tolerance)


def test_what_is_kept_is_not_computed_again(stack: dit.BlockStack, draw: Draw) -> None:
    flow, tokens = pack_flow(stack, 37), draw(4, 37, 64)
    first = FirstBlock(flow, LibraryOps(), FRESH)
    _, before = first.open(tokens)
    before = before.clone().view(4, 37, -1)
    _, after = first.open(torch.zeros_like(tokens))
    after = after.view(4, 37, -1)
    assert torch.equal(before[:, 1:-FRESH], after[:, 1:-FRESH])
    assert not torch.equal(before[:, :1], after[:, :1])
    assert not torch.equal(before[:, -FRESH:], after[:, -FRESH:])
