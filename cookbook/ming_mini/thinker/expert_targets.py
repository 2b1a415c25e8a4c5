"""The share of a router's choices that each expert should get.

If every router used all experts alike, any router could replace another. So each modality prefers
expert groups of its own: text half of the groups, pictures and audio a quarter each. Together the
preferences keep every expert busy.
"""

from functools import lru_cache

import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.routing import ROUTERS, Routing

PREFERENCE = 24.0
"""How many times as often a router should use an expert of its preferred groups as another."""


@lru_cache
def expert_shares(routing: Routing, device: torch.device) -> Tensor:
    """Return for each router the share of its choices that each expert should get: [3, experts]."""
    half, quarter = routing.groups // 2, routing.groups // 4
    group_ranges = (range(half), range(half, half + quarter), range(half + quarter, routing.groups))
    shares = torch.ones(len(ROUTERS), routing.groups, routing.experts // routing.groups)
    for router, groups in enumerate(group_ranges):
        shares[router, list(groups)] = PREFERENCE
    flat = shares.flatten(1)
    return (flat / flat.sum(-1, keepdim=True)).to(device)
