"""Balance of experts without a loss that fights the model's own: biases follow the counts.

After every step an expert that got more than its share of a router's tokens becomes a little less
likely to be chosen, and the others a little more (DeepSeek-V3, section 2.1.2). The bias decides
who is chosen, never with what weight.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from cookbook.ming_mini.thinker.forward import Load
from sglang_omni.models.ming.thinker.reference import SparseMLP
from sglang_omni.models.ming.thinker.routing import ROUTERS


@torch.no_grad()
def rebalance(layers: Sequence[SparseMLP], counts: Tensor, speed: float) -> None:
    """Move the biases by `speed`; `counts` [layers, 3, experts] are the step's."""
    for layer, of_layer in zip(layers, counts, strict=True):
        for name, of_router in zip(ROUTERS, of_layer, strict=True):
            # Zero for a router that no token of the step used.
            getattr(layer, name).expert_bias += speed * (of_router.mean() - of_router).sign()


def summed(steps: Sequence[Sequence[Load]]) -> Tensor:
    """Counts [layers, 3, experts] of several batches together."""
    return torch.stack([torch.stack([load.counts for load in loads]) for loads in steps]).sum(0)


def spread(counts: Tensor) -> Tensor:
    """For each router [3] the share of its busiest expert, times the experts: 1 is even."""
    total = counts.sum(-1).clamp(min=1.0)
    return (counts.amax(-1) / total * counts.shape[-1]).mean(0)
