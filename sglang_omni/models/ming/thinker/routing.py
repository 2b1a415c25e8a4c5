"""Group-limited sigmoid routing in plain PyTorch.

Scores select with a bias and combine without it: a token uses its best experts among the best
groups. A group is ranked by the sum of its two largest biased scores.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

TEXT, IMAGE, AUDIO = 0, 1, 2
ROUTERS = ("gate", "image_gate", "audio_gate")  # Checkpoint names, in the order of route ids.


@dataclass(frozen=True)
class Routing:
    """The routing constants of a checkpoint."""

    experts: int
    groups: int
    top_groups: int
    top_k: int
    scale: float

    @classmethod
    def from_config(cls, config: Any) -> "Routing":
        """Read the constants from the text configuration."""
        return cls(
            experts=config.num_experts,
            groups=config.n_group,
            top_groups=config.topk_group,
            top_k=config.num_experts_per_tok,
            scale=config.routed_scaling_factor,
        )


def select_experts(logits: Tensor, bias: Tensor, routing: Routing) -> tuple[Tensor, Tensor]:
    """Select experts for logits [tokens, experts].

    `bias` is [experts] or, when tokens use different routers, [tokens, experts].

    Returns:
        float32 weights and int64 ids, both [tokens, top_k]; weights are normalised and scaled.
    """
    scores = logits.float().sigmoid()
    biased = scores + bias.float()
    grouped = biased.unflatten(-1, (routing.groups, -1))
    best_groups = grouped.topk(2, dim=-1).values.sum(-1).topk(routing.top_groups, dim=-1).indices
    is_closed = torch.ones_like(grouped[..., 0], dtype=torch.bool).scatter_(-1, best_groups, False)
    allowed = grouped.masked_fill(is_closed[..., None], float("-inf")).flatten(-2)
    ids = allowed.topk(routing.top_k, dim=-1).indices
    weights = scores.gather(-1, ids)
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * routing.scale
    return weights, ids


def select_router(logits: Tensor, bias: Tensor, routes: Tensor) -> tuple[Tensor, Tensor]:
    """Select the router of each token from logits [tokens, 3, experts] and bias [3, experts].

    `routes` [tokens] holds route ids. Returns logits and bias, both [tokens, experts].
    """
    index = routes.long()
    rows = torch.arange(len(index), device=index.device)
    return logits[rows, index], bias[index]


def append_shared_expert(weights: Tensor, ids: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    """Append the shared expert, which follows the `experts` routed ones, with weight 1.

    `weights` and `ids` are [tokens, top_k]; returns [tokens, top_k + 1] of each.
    """
    ones, shared_ids = torch.ones_like(weights[:, :1]), torch.full_like(ids[:, :1], experts)
    return torch.cat((weights, ones), dim=-1), torch.cat((ids, shared_ids), dim=-1)


def mask_remote_experts(weights: Tensor, ids: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    """Replace the ids -1 of other ranks' experts, which then add nothing to this rank's sum.

    Args:
        weights: [tokens, top_k].
        ids: [tokens, top_k]; a token has each of the local `experts` at most once.
        experts: Number of local experts, at least top_k.

    Returns:
        Weights, zero for other ranks' experts, and local ids that differ within each token.
    """
    is_remote = ids < 0
    # One more column takes the marks of other ranks' experts.
    column = ids.masked_fill(is_remote, experts).long()
    is_used = torch.zeros(len(ids), experts + 1, dtype=torch.uint8, device=ids.device)
    is_used = is_used.scatter_(1, column, 1)[:, :experts]
    unused_first = is_used.argsort(dim=1, stable=True).to(ids.dtype)
    rank = (is_remote.long().cumsum(dim=1) - 1).clamp(min=0)
    unused = unused_first.gather(1, rank)
    return weights.masked_fill(is_remote, 0.0), torch.where(is_remote, unused, ids)
