"""Which experts a router should use: all of them, but some more.

If every router used all experts alike, any router could stand in for another. So each modality is
at home in groups of its own: half of the groups are home to text, a quarter each to pictures and
to sound. Together the homes keep every expert busy.
"""

from functools import lru_cache

import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.routing import ROUTERS, Routing

AT_HOME = 24.0
"""How many times as often a router should use an expert at home as one abroad."""


@lru_cache
def home_shares(routing: Routing, device: torch.device) -> Tensor:
    """For each router the share of its choices that each expert should get: [3, experts]."""
    half, quarter = routing.groups // 2, routing.groups // 4
    homes = (range(half), range(half, half + quarter), range(half + quarter, routing.groups))
    shares = torch.ones(len(ROUTERS), routing.groups, routing.experts // routing.groups)
    for router, groups in enumerate(homes):
        shares[router, list(groups)] = AT_HOME
    flat = shares.flatten(1)
    return (flat / flat.sum(-1, keepdim=True)).to(device)
