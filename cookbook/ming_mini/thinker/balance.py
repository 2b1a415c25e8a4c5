"""Balance experts without an auxiliary loss: biases follow the counts.

After every step an expert that got more than its share of a router's tokens becomes a little less
likely to be chosen, and the others a little more (DeepSeek-V3, section 2.1.2). The shares depend on
the modality, see `expert_targets`. The bias affects which experts are chosen, not their weights.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from cookbook.ming_mini.thinker.expert_targets import expert_shares
from cookbook.ming_mini.thinker.forward import RouterLoad
from sglang_omni.models.ming.thinker.reference import ReferenceSparseMLP
from sglang_omni.models.ming.thinker.routing import ROUTERS, Routing


@torch.no_grad()
def update_biases(
    layers: Sequence[ReferenceSparseMLP], counts: Tensor, speed: float | Tensor
) -> None:
    """Move the biases by `speed`; `counts` [layers, 3, experts] are those of the step."""
    wanted = expert_shares(layers[0].routing, counts.device) * counts.sum(-1, keepdim=True)
    # Zero for a router without tokens in the step.
    moves = (wanted - counts).sign() * speed
    biases = [getattr(layer, name).expert_bias for layer in layers for name in ROUTERS]
    torch._foreach_add_(biases, list(moves.flatten(0, 1).unbind()))


def sum_counts(steps: Sequence[Sequence[RouterLoad]]) -> Tensor:
    """Sum the counts [layers, 3, experts] of several batches."""
    return torch.stack([torch.stack([load.counts for load in loads]) for loads in steps]).sum(0)


def max_relative_load(counts: Tensor, routing: Routing) -> Tensor:
    """Return the relative load of each router's fullest expert [3].

    It is relative to the expert's share; 1 is the target.
    """
    total = counts.sum(-1, keepdim=True).clamp(min=1.0)
    return (counts / total / expert_shares(routing, counts.device)).amax(-1).mean(0)
