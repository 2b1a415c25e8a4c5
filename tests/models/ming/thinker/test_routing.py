"""Group-limited routing: its own rules."""

import pytest
import torch

from sglang_omni.models.ming.thinker.routing import (
    AUDIO,
    IMAGE,
    TEXT,
    Routing,
    select_experts,
    select_router,
)

TINY = Routing(experts=16, groups=4, top_groups=2, top_k=4, scale=2.5)
RELEASED = Routing(experts=256, groups=8, top_groups=4, top_k=8, scale=2.5)


@pytest.mark.parametrize("routing", [TINY, RELEASED])
def test_weights_are_unbiased_scores_normalised_and_scaled(routing: Routing) -> None:
    torch.manual_seed(0)
    logits, bias = torch.randn(32, routing.experts), torch.randn(routing.experts)
    weights, ids = select_experts(logits, bias, routing)
    scores = logits.sigmoid().gather(-1, ids)
    torch.testing.assert_close(weights, scores / scores.sum(-1, keepdim=True) * routing.scale)


@pytest.mark.parametrize("routing", [TINY, RELEASED])
def test_experts_come_from_the_best_groups_only(routing: Routing) -> None:
    torch.manual_seed(1)
    logits = torch.randn(32, routing.experts)
    _, ids = select_experts(logits, torch.zeros(routing.experts), routing)
    size = routing.experts // routing.groups
    grouped = logits.sigmoid().unflatten(-1, (routing.groups, -1))
    best = grouped.topk(2, dim=-1).values.sum(-1).topk(routing.top_groups, dim=-1).indices
    assert all(
        set((row // size).tolist()) <= set(b.tolist()) for row, b in zip(ids, best, strict=True)
    )


def test_each_token_uses_the_router_of_its_route() -> None:
    torch.manual_seed(2)
    logits, bias = torch.randn(6, 3, TINY.experts), torch.randn(3, TINY.experts)
    routes = torch.tensor([TEXT, IMAGE, AUDIO, AUDIO, IMAGE, TEXT], dtype=torch.uint8)
    weights, ids = select_experts(*select_router(logits, bias, routes), TINY)
    for token, router in enumerate(routes.tolist()):
        alone = select_experts(logits[token : token + 1, router], bias[router], TINY)
        torch.testing.assert_close(weights[token], alone[0][0])
        assert torch.equal(ids[token], alone[1][0])
