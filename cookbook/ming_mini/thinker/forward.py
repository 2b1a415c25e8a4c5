"""The thinker over many sequences at once: the reference's modules, its parameters, its numbers.

`reference.py` runs one sequence and one expert after the other. Here the tokens of all sequences
are rows of one matrix, and only attention asks which sequence a row is of. Sequences of about one
length form a batch, padded at their ends, where causal attention needs no mask; batches of other
lengths follow. All experts are one product, in whose middle a token's own experts are weighted and
the others are zeroed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.thinker.homes import home_shares
from cookbook.ming_mini.thinker.regions import Run, plainly
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
    """What every layer knows of T tokens: those of batches of `shapes` (B, L), one batch after
    the other, and behind them rows that are of no sequence.

    `positions` [3, T] and `routes` [T] are the reference's; `real` [T] is false for padding, which
    no router is judged by.
    """

    positions: Tensor
    routes: Tensor
    real: Tensor
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Load:
    """One layer's routing: how many tokens each router sent to each expert, float [3, experts],
    and a loss that is 1 where they are spread as they should be, and more where they crowd."""

    counts: Tensor
    uneven: Tensor


class Turns(NamedTuple):
    """Rotary tables [T, rotary_dim / 2]."""

    cos: Tensor
    sin: Tensor


class Experts(NamedTuple):
    """The weights of a layer's experts side by side: `up` [2 * experts * width, hidden], the gates
    first, and `down` [hidden, experts * width]."""

    up: Tensor
    down: Tensor


class Routed(NamedTuple):
    """Which router a row uses: `whose` [T, 3] is one there and zero elsewhere, and `judged` [T, 3]
    zero for padding as well. `wanted` [3, experts] is the share each expert should get."""

    whose: Tensor
    judged: Tensor
    wanted: Tensor


def think(
    model: ThinkerReference, x: Tensor, rows: Rows, run: Run = plainly
) -> tuple[Tensor, list[Load]]:
    """Final hidden states [T, hidden] of embeddings x [T, hidden], and the routers' loads."""
    decoder, loads = model.model, []
    turns = Turns(*compute_rotary_tables(rows.positions, decoder.inv_freq, decoder.axes))
    routed = _routed(rows, Routing.from_config(model.config))
    for layer in decoder.layers:
        seen = attend(*run(project, layer, x, turns), rows.shapes)
        if layer.sparse:
            x, counts, uneven = run(finish_sparse, layer, x, seen, stack(layer.mlp), routed)
            loads.append(Load(counts, uneven))
        else:
            x = run(finish_dense, layer, x, seen)
    return decoder.norm(x), loads


def _routed(rows: Rows, routing: Routing) -> Routed:
    routers = torch.arange(len(ROUTERS), device=rows.routes.device)
    whose = (rows.routes[:, None] == routers).float()
    return Routed(whose, whose * rows.real[:, None], home_shares(routing, rows.routes.device))


def project(layer: ReferenceLayer, x: Tensor, turns: Turns) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [T, heads, head_dim], keys and values of a layer's attention."""
    module = layer.attention
    queries, keys = module.heads
    qkv = module.query_key_value(layer.input_layernorm(x)).unflatten(-1, (-1, module.head_dim))
    q, k, v = qkv.split([queries, keys, keys], dim=1)
    q, k = apply_rotary(module.q_norm(q), *turns), apply_rotary(module.k_norm(k), *turns)
    # A copy: handed out as a part of the product, its gradient would be as large as that.
    return q.to(qkv.dtype), k.to(qkv.dtype), v.clone()


def attend(q: Tensor, k: Tensor, v: Tensor, shapes: Sequence[Shape]) -> Tensor:
    """Causal attention within each sequence: [T, heads * head_dim]; zero for rows of none."""
    sizes = [batch * length for batch, length in shapes]
    rest = len(q) - sum(sizes)
    # Split, not sliced: the gradients of slices would each be as large as the whole.
    pieces = zip(*(part.split([*sizes, rest]) for part in (q, k, v)), shapes, strict=False)
    found = [_attend(*piece) for piece in pieces]
    return torch.cat([*found, found[0].new_zeros(rest, found[0].shape[1])])


def _attend(q: Tensor, k: Tensor, v: Tensor, shape: Shape) -> Tensor:
    out = F.scaled_dot_product_attention(
        *(part.unflatten(0, shape).transpose(1, 2) for part in (q, k, v)),
        is_causal=True,
        enable_gqa=True,
    )
    return out.transpose(1, 2).flatten(2).flatten(0, 1)


def finish_dense(layer: ReferenceLayer, x: Tensor, seen: Tensor) -> Tensor:
    """What follows the attention of a dense layer."""
    x = x + layer.attention.dense(seen)
    return x + layer.mlp(layer.post_attention_layernorm(x))


def finish_sparse(
    layer: ReferenceLayer, x: Tensor, seen: Tensor, experts: Experts, routed: Routed
) -> tuple[Tensor, Tensor, Tensor]:
    """What follows the attention of a sparse layer; and the two numbers of its `Load`."""
    x = x + layer.attention.dense(seen)
    normed = layer.post_attention_layernorm(x)
    combine, counts, uneven = choose(layer.mlp, normed, routed)
    gates, ups = F.linear(normed, experts.up).chunk(2, dim=-1)
    hidden = (F.silu(gates) * ups).unflatten(1, (combine.shape[1], -1))
    weighted = (hidden * combine[..., None].to(hidden.dtype)).flatten(1)
    out = F.linear(weighted, experts.down) + layer.mlp.shared_experts(normed)
    return x + out, counts, uneven


def stack(module: ReferenceSparseMLP) -> Experts:
    """The experts' weights side by side."""
    gate, up, down = (
        [getattr(expert, f"{part}_proj").weight for expert in module.experts]
        for part in ("gate", "up", "down")
    )
    # Not joined along the other side: an expert's gradient would be no matrix of its own.
    return Experts(torch.cat(gate + up), torch.stack(down, dim=1).flatten(1))


def choose(module: ReferenceSparseMLP, x: Tensor, routed: Routed) -> tuple[Tensor, Tensor, Tensor]:
    """Weights [T, experts] of every expert for x [T, hidden], zero where not chosen; and the two
    numbers of the layer's `Load`."""
    with torch.autocast(x.device.type, enabled=False):
        routers = [getattr(module, name) for name in ROUTERS]
        stacked = torch.cat([router.weight for router in routers]).float()
        bias = torch.stack([router.expert_bias for router in routers])
        every = F.linear(x.float(), stacked).unflatten(-1, (len(routers), -1))
        # Sums, not look-ups: the gradient of a look-up would be sorted first.
        logits = (every * routed.whose[..., None]).sum(1)
        scores = logits.sigmoid()
        own_bias = (bias * routed.whose[..., None]).sum(1)
        chosen = chosen_experts((scores + own_bias).detach(), module.routing)
        kept = scores * chosen
        combine = kept / (kept.sum(-1, keepdim=True) + 1e-20) * module.routing.scale
        return combine, *_load(scores, chosen.float(), routed)


def chosen_experts(choice: Tensor, routing: Routing) -> Tensor:
    """Whether a token takes an expert, bool [T, experts]: `routing.select_experts`, but without
    sorting, so that it is one kernel."""
    grouped = choice.unflatten(-1, (routing.groups, -1))
    best_two = torch.where(leading(grouped, 2), grouped, 0.0).sum(-1)
    open_groups = leading(best_two, routing.top_groups)
    allowed = torch.where(open_groups[..., None], grouped, float("-inf"))
    return leading(allowed.flatten(-2), routing.top_k)


def leading(values: Tensor, count: int) -> Tensor:
    """Whether each of values [..., n] is among the `count` largest; the first of equals is."""
    places = torch.arange(values.shape[-1], device=values.device)
    one, other = values[..., :, None], values[..., None, :]
    ahead = (other > one) | ((other == one) & (places < places[:, None]))
    return ahead.sum(-1) < count


def _load(scores: Tensor, chosen: Tensor, routed: Routed) -> tuple[Tensor, Tensor]:
    counts = routed.judged.T @ chosen
    liked = routed.judged.T @ (scores / scores.sum(-1, keepdim=True))
    total = routed.judged.sum(0)
    share = counts / counts.sum(-1, keepdim=True).clamp(min=1.0)
    uneven = (share / routed.wanted * liked / total.clamp(min=1.0)[:, None]).sum(-1)
    used = (total > 0).float()
    return counts, (uneven * used).sum() / used.sum().clamp(min=1.0)
