"""The thinker over many sequences at once: the reference's modules, its parameters, its numbers.

`reference.py` runs one sequence and one expert after the other. Here sequences of about one length
lie side by side, padded at their ends, where causal attention needs no mask; and all experts are
one product, in whose middle a token's own experts are weighted and the others are zeroed.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.thinker.homes import home_shares
from sglang_omni.models.ming.thinker.reference import (
    Attention,
    Layer,
    SparseMLP,
    ThinkerReference,
)
from sglang_omni.models.ming.thinker.rope import cos_sin, rotate
from sglang_omni.models.ming.thinker.routing import ROUTERS, route, select_router

Tables = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Rows:
    """What every layer knows of B sequences of L tokens.

    `positions` [3, B, L] and `routes` [B, L] are the reference's; `real` [B, L] is false for
    padding, which no router is judged by.
    """

    positions: Tensor
    routes: Tensor
    real: Tensor


@dataclass(frozen=True)
class Load:
    """One layer's routing: how many tokens each router sent to each expert, float [3, experts],
    and a loss that is 1 where they are spread as they should be, and more where they crowd."""

    counts: Tensor
    uneven: Tensor


def think(model: ThinkerReference, x: Tensor, rows: Rows) -> tuple[Tensor, list[Load]]:
    """Final hidden states [B, L, hidden] of embeddings x [B, L, hidden], and the routers' loads."""
    decoder, loads = model.model, []
    tables = cos_sin(rows.positions.flatten(1), decoder.inv_freq, decoder.rows)
    for layer in decoder.layers:
        x, load = _layer(layer, x, tables, rows)
        loads += [load] if load else []
    return decoder.norm(x), loads


def _layer(layer: Layer, x: Tensor, tables: Tables, rows: Rows) -> tuple[Tensor, Load | None]:
    x = x + attend(layer.attention, layer.input_layernorm(x), tables)
    normed = layer.post_attention_layernorm(x)
    if not layer.sparse:
        return x + layer.mlp(normed), None
    out, load = mix(layer.mlp, normed, rows)
    return x + out, load


def attend(module: Attention, x: Tensor, tables: Tables) -> Tensor:
    """Causal attention within each of x [B, L, hidden]."""
    batch, length, _ = x.shape
    queries, keys = module.heads
    qkv = module.query_key_value(x).view(batch * length, -1, module.head_dim)
    q, k, v = qkv.split([queries, keys, keys], dim=1)
    q, k = rotate(module.q_norm(q), *tables), rotate(module.k_norm(k), *tables)
    q, k, v = (part.to(qkv.dtype).view(batch, length, -1, module.head_dim) for part in (q, k, v))
    out = F.scaled_dot_product_attention(
        *(part.transpose(1, 2) for part in (q, k, v)), is_causal=True, enable_gqa=True
    )
    return module.dense(out.transpose(1, 2).flatten(2))


def mix(module: SparseMLP, x: Tensor, rows: Rows) -> tuple[Tensor, Load]:
    """The sparse layer on x [B, L, hidden], all experts at once."""
    flat = x.flatten(0, 1)
    combine, load = choose(module, flat, rows.routes.flatten(), rows.real.flatten())
    gate, up, down = (
        [getattr(expert, f"{part}_proj").weight for expert in module.experts]
        for part in ("gate", "up", "down")
    )
    hidden = F.silu(F.linear(flat, torch.cat(gate))) * F.linear(flat, torch.cat(up))
    weighted = hidden.unflatten(1, (len(gate), -1)) * combine[..., None].to(hidden.dtype)
    out = F.linear(weighted.flatten(1), torch.cat(down, dim=1))
    return (out + module.shared_experts(flat)).view_as(x), load


def choose(module: SparseMLP, x: Tensor, routes: Tensor, real: Tensor) -> tuple[Tensor, Load]:
    """Weights [tokens, experts] of every expert for x [tokens, hidden], zero where not chosen."""
    with torch.autocast(x.device.type, enabled=False):
        routers = [getattr(module, name) for name in ROUTERS]
        stacked = torch.cat([router.weight for router in routers]).float()
        bias = torch.stack([router.expert_bias for router in routers])
        logits = F.linear(x.float(), stacked).unflatten(-1, (len(routers), -1))
        chosen, own_bias = select_router(logits, bias, routes)
        weights, ids = route(chosen, own_bias, module.routing)
        combine = torch.zeros_like(chosen).scatter(1, ids, weights)
        wanted = home_shares(module.routing, x.device)
        return combine, _load(chosen, combine, routes, real, wanted)


def _load(logits: Tensor, combine: Tensor, routes: Tensor, real: Tensor, wanted: Tensor) -> Load:
    whose = F.one_hot(routes.long(), len(ROUTERS)).float() * real[:, None]
    counts = whose.T @ (combine.detach() > 0).float()
    scores = logits.sigmoid()
    liked = whose.T @ (scores / scores.sum(-1, keepdim=True))
    busy = whose.sum(0).clamp(min=1.0)[:, None]
    share = counts / counts.sum(-1, keepdim=True).clamp(min=1.0)
    uneven = (share / wanted * liked / busy).sum(-1)
    used = (whose.sum(0) > 0).float()
    return Load(counts, (uneven * used).sum() / used.sum().clamp(min=1.0))
