"""Run the thinker over many sequences at once: the reference's modules, parameters and numbers.

`reference.py` runs one sequence and one expert after the other. Here the tokens of all sequences
are rows of one matrix, and only attention separates sequences. Sequences of about the same length
form a batch, padded at their ends, where causal attention needs no mask; batches of other lengths
follow. All experts are one GEMM, in whose middle a token's own experts are weighted and the others
are zeroed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.compilation import Runner, run_eager
from cookbook.ming_mini.thinker.expert_targets import expert_shares
from sglang_omni.models.ming.thinker.reference import (
    ReferenceLayer,
    ReferenceSparseMLP,
    ThinkerReference,
)
from sglang_omni.models.ming.thinker.rope import apply_rotary, compute_rotary_tables
from sglang_omni.models.ming.thinker.routing import ROUTERS, Routing

Shape = tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """The layer-independent inputs of T tokens.

    The rows are those of batches of `shapes` (B, L), one batch after the other, followed by rows
    that belong to no sequence. `positions` [3, T] and `routes` [T] are the reference's. `real` [T]
    is false for padding, which does not count for the routers.
    """

    positions: Tensor
    routes: Tensor
    real: Tensor
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class RouterLoad:
    """The routing of one layer.

    `counts`, float [3, experts], is how many tokens each router sent to each expert. `uneven` is a
    loss: 1 if they are distributed by the target shares, and more otherwise.
    """

    counts: Tensor
    uneven: Tensor


class RotaryTables(NamedTuple):
    """Rotary tables [T, rotary_dim / 2]."""

    cos: Tensor
    sin: Tensor


class Experts(NamedTuple):
    """The weights of a layer's experts side by side.

    `up` is [2 * experts * width, hidden] with the gates first, `down` is [hidden, experts * width].
    """

    up: Tensor
    down: Tensor


class RowRouting(NamedTuple):
    """The router of each row.

    `router_mask` [T, 3] is one for the row's router and zero elsewhere; `counted_mask` [T, 3] is
    also zero for padding. `target_shares` [3, experts] is the share that each expert should get.
    """

    router_mask: Tensor
    counted_mask: Tensor
    target_shares: Tensor


def run_thinker(
    model: ThinkerReference, x: Tensor, rows: Rows, run: Runner = run_eager
) -> tuple[Tensor, list[RouterLoad]]:
    """Return final hidden states [T, hidden] and the routers' loads.

    `x` are embeddings [T, hidden].
    """
    decoder, loads = model.model, []
    turns = RotaryTables(*compute_rotary_tables(rows.positions, decoder.inv_freq, decoder.axes))
    routed = _route_rows(rows, Routing.from_config(model.config))
    for layer in decoder.layers:
        assert isinstance(layer, ReferenceLayer)
        seen = attend(*run(project, layer, x, turns), rows.shapes)
        if isinstance(layer.mlp, ReferenceSparseMLP):
            x, counts, uneven = run(finish_sparse, layer, x, seen, stack_experts(layer.mlp), routed)
            loads.append(RouterLoad(counts, uneven))
        else:
            x = run(finish_dense, layer, x, seen)
    return decoder.norm(x), loads


def _route_rows(rows: Rows, routing: Routing) -> RowRouting:
    routers = torch.arange(len(ROUTERS), device=rows.routes.device)
    whose = (rows.routes[:, None] == routers).float()
    return RowRouting(whose, whose * rows.real[:, None], expert_shares(routing, rows.routes.device))


def project(layer: ReferenceLayer, x: Tensor, turns: RotaryTables) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries [T, heads, head_dim], keys and values of a layer's attention."""
    module = layer.attention
    queries, keys = module.heads
    qkv = module.query_key_value(layer.input_layernorm(x)).unflatten(-1, (-1, module.head_dim))
    q, k, v = qkv.split([queries, keys, keys], dim=1)
    q, k = apply_rotary(module.q_norm(q), *turns), apply_rotary(module.k_norm(k), *turns)
    # A copy: as a view of the product, its gradient would be as large as the whole product.
    return q.to(qkv.dtype), k.to(qkv.dtype), v.clone()


def attend(q: Tensor, k: Tensor, v: Tensor, shapes: Sequence[Shape]) -> Tensor:
    """Compute causal attention within each sequence: [T, heads * head_dim]; zero for other rows."""
    sizes = [batch * length for batch, length in shapes]
    rest = len(q) - sum(sizes)
    # Split, not sliced: the gradients of slices would each be as large as the whole.
    pieces = zip(*(part.split([*sizes, rest]) for part in (q, k, v)), shapes, strict=False)
    found = [_attend(*piece) for piece in pieces]
    return torch.cat([*found, found[0].new_zeros(rest, found[0].shape[1])])


def _attend(q: Tensor, k: Tensor, v: Tensor, shape: Shape) -> Tensor:
    q, k, v = (part.unflatten(0, shape).transpose(1, 2) for part in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2).flatten(2).flatten(0, 1)


def finish_dense(layer: ReferenceLayer, x: Tensor, seen: Tensor) -> Tensor:
    """Run the part of a dense layer after attention."""
    x = x + layer.attention.dense(seen)
    return x + layer.mlp(layer.post_attention_layernorm(x))


def finish_sparse(
    layer: ReferenceLayer, x: Tensor, seen: Tensor, experts: Experts, routed: RowRouting
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the part of a sparse layer after attention.

    Also returns the two numbers of its `RouterLoad`.
    """
    assert isinstance(layer.mlp, ReferenceSparseMLP)
    x = x + layer.attention.dense(seen)
    normed = layer.post_attention_layernorm(x)
    combine, counts, uneven = weigh_experts(layer.mlp, normed, routed)
    gates, ups = F.linear(normed, experts.up).chunk(2, dim=-1)
    hidden = (F.silu(gates) * ups).unflatten(1, (combine.shape[1], -1))
    weighted = (hidden * combine[..., None].to(hidden.dtype)).flatten(1)
    out = F.linear(weighted, experts.down) + layer.mlp.shared_experts(normed)
    return x + out, counts, uneven


def stack_experts(module: ReferenceSparseMLP) -> Experts:
    """Put the experts' weights side by side."""
    gate, up, down = (
        [getattr(expert, f"{part}_proj").weight for expert in module.experts]
        for part in ("gate", "up", "down")
    )
    # Not joined along the other axis: an expert's gradient would not be a contiguous matrix.
    return Experts(torch.cat(gate + up), torch.stack(down, dim=1).flatten(1))


def weigh_experts(
    module: ReferenceSparseMLP, x: Tensor, routed: RowRouting
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weights [T, experts] of every expert for x [T, hidden], zero if not chosen.

    Also returns the two numbers of the layer's `RouterLoad`.
    """
    with torch.autocast(x.device.type, enabled=False):
        routers = [getattr(module, name) for name in ROUTERS]
        stacked = torch.cat([router.weight for router in routers]).float()
        bias = torch.stack([router.expert_bias for router in routers])
        every = F.linear(x.float(), stacked).unflatten(-1, (len(routers), -1))
        # Sums instead of look-ups, because the gradient of a look-up needs a sort.
        logits = (every * routed.router_mask[..., None]).sum(1)
        scores = logits.sigmoid()
        own_bias = (bias * routed.router_mask[..., None]).sum(1)
        chosen = chosen_experts((scores + own_bias).detach(), module.routing)
        kept = scores * chosen
        combine = kept / (kept.sum(-1, keepdim=True) + 1e-20) * module.routing.scale
        return combine, *_measure_load(scores, chosen.float(), routed)


def chosen_experts(choice: Tensor, routing: Routing) -> Tensor:
    """Return whether a token takes an expert, bool [T, experts].

    This is `routing.select_experts`, but without sorting, so that it is one kernel.
    """
    grouped = choice.unflatten(-1, (routing.groups, -1))
    best_two = torch.where(is_among_largest(grouped, 2), grouped, 0.0).sum(-1)
    open_groups = is_among_largest(best_two, routing.top_groups)
    allowed = torch.where(open_groups[..., None], grouped, float("-inf"))
    return is_among_largest(allowed.flatten(-2), routing.top_k)


def is_among_largest(values: Tensor, count: int) -> Tensor:
    """Return whether each of values [..., n] is among the `count` largest.

    Of equal values the first is.
    """
    places = torch.arange(values.shape[-1], device=values.device)
    one, other = values[..., :, None], values[..., None, :]
    ahead = (other > one) | ((other == one) & (places < places[:, None]))
    return ahead.sum(-1) < count


def _measure_load(scores: Tensor, chosen: Tensor, routed: RowRouting) -> tuple[Tensor, Tensor]:
    counts = routed.counted_mask.T @ chosen
    liked = routed.counted_mask.T @ (scores / scores.sum(-1, keepdim=True))
    total = routed.counted_mask.sum(0)
    share = counts / counts.sum(-1, keepdim=True).clamp(min=1.0)
    uneven = (share / routed.target_shares * liked / total.clamp(min=1.0)[:, None]).sum(-1)
    used = (total > 0).float()
    return counts, (uneven * used).sum() / used.sum().clamp(min=1.0)
