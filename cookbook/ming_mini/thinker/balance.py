"""Balance of experts without a loss that fights the model's own: biases follow the counts.

After every step an expert that got more than its share of a router's tokens becomes a little less
likely to be chosen, and the others a little more (DeepSeek-V3, section 2.1.2). What its share is
depends on the modality, see `homes`. The bias decides who is chosen, never with what weight.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from cookbook.ming_mini.thinker.forward import Load
from cookbook.ming_mini.thinker.homes import home_shares
from sglang_omni.models.ming.thinker.reference import ReferenceSparseMLP
from sglang_omni.models.ming.thinker.routing import ROUTERS, Routing


@torch.no_grad()
def rebalance(layers: Sequence[ReferenceSparseMLP], counts: Tensor, speed: float | Tensor) -> None:
    """Move the biases by `speed`; `counts` [layers, 3, experts] are the step's."""
    wanted = home_shares(layers[0].routing, counts.device) * counts.sum(-1, keepdim=True)
    # Zero for a router that no token of the step used.
    moves = (wanted - counts).sign() * speed
    biases = [getattr(layer, name).expert_bias for layer in layers for name in ROUTERS]
    torch._foreach_add_(biases, list(moves.flatten(0, 1).unbind()))


def summed(steps: Sequence[Sequence[Load]]) -> Tensor:
    """Counts [layers, 3, experts] of several batches together."""
    return torch.stack([torch.stack([load.counts for load in loads]) for loads in steps]).sum(0)


def spread(counts: Tensor, routing: Routing) -> Tensor:
    """For each router [3] its most crowded expert's load in shares; 1 is as it should be."""
    total = counts.sum(-1, keepdim=True).clamp(min=1.0)
    return (counts / total / home_shares(routing, counts.device)).amax(-1).mean(0)
