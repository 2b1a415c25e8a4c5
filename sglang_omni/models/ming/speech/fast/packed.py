"""Weights packed for the fused kernels: joined projections and folded constants."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from sglang_omni.models.ming.speech import dit, qwen2
from sglang_omni.models.ming.speech.fast.ops import Linear, Norm
from sglang_omni.models.ming.speech.kernels.fp8 import quantize_rows_reference


@dataclass(frozen=True)
class FlowBlock:
    """One block of the flow model or the aggregator."""

    norm1: Norm
    qkv: Linear
    out: Linear
    norm2: Norm
    up: Linear
    down: Linear


@dataclass(frozen=True)
class FlowStack:
    """A packed `BlockStack`: blocks, rotary tables [length, head_dim / 2] and both ends."""

    heads: int
    cos: Tensor
    sin: Tensor
    blocks: tuple[FlowBlock, ...]
    embed: Tensor
    embed_bias: Tensor
    final_norm: Norm
    final: Linear


def pack_flow(stack: dit.BlockStack, length: int, *, fp8: bool = False) -> FlowStack:
    """Pack a stack for sequences of `length` tokens.

    With `fp8`, its blocks get FP8 weights too.
    """
    cos, sin = stack.rotary_embed(length)
    shift = torch.zeros_like(stack.final_layer.norm_final.weight, dtype=torch.float32)
    blocks = []
    plain = [cast(dit.DiTBlock, block) for block in stack.blocks]
    for block in plain:
        packed = _pack_flow_block(block, shift, fp8)
        blocks.append(packed)
        assert packed.norm2.shift is not None
        assert packed.down.bias is not None
        shift = packed.norm2.shift + packed.down.bias.float()
    final = stack.final_layer
    return FlowStack(
        heads=plain[0].attn.heads,
        # Both dimensions of a pair rotate by the same angle.
        cos=cos[:, ::2].contiguous(),
        sin=sin[:, ::2].contiguous(),
        blocks=tuple(blocks),
        embed=stack.x_embedder.weight,
        embed_bias=stack.x_embedder.bias,
        final_norm=Norm(final.norm_final.weight, dit.NORM_EPS, shift),
        final=Linear(final.linear.weight, final.linear.bias),
    )


def _pack_flow_block(block: dit.DiTBlock, shift: Tensor, fp8: bool) -> FlowBlock:
    attn = block.attn
    up = cast(nn.Linear, cast(nn.Sequential, block.mlp.ff[0])[0])
    down, out = cast(nn.Linear, block.mlp.ff[2]), cast(nn.Linear, attn.to_out[0])

    def linear(weight: Tensor, bias: Tensor) -> Linear:
        return Linear(weight, bias, quantize_rows_reference(weight) if fp8 else None)

    order = _even_first_order(attn.to_q.out_features, attn.heads, attn.to_q.weight.device)
    return FlowBlock(
        norm1=Norm(block.norm1.weight, dit.NORM_EPS, shift),
        qkv=linear(
            torch.cat((attn.to_q.weight[order], attn.to_k.weight[order], attn.to_v.weight)),
            torch.cat((attn.to_q.bias[order], attn.to_k.bias[order], attn.to_v.bias)),
        ),
        out=linear(out.weight, out.bias),
        norm2=Norm(block.norm2.weight, dit.NORM_EPS, shift + out.bias.float()),
        up=linear(up.weight, up.bias),
        down=linear(down.weight, down.bias),
    )


def _even_first_order(width: int, heads: int, device: torch.device) -> Tensor:
    """Return the feature order that puts the even dimensions of each head before the odd ones.

    Applied to both queries and keys, it does not change the attention scores.
    """
    return torch.arange(width, device=device).view(heads, -1, 2).mT.flatten()


@dataclass(frozen=True)
class DecoderLayer:
    """One Qwen2 layer."""

    norm1: Norm
    qkv: Linear
    out: Linear
    norm2: Norm
    gate_up: Linear
    down: Linear


@dataclass(frozen=True)
class DecoderStack:
    """A packed `Qwen2Stack`: layers, final norm and rotary tables [positions, head_dim / 2]."""

    layers: tuple[DecoderLayer, ...]
    norm: Norm
    cos: Tensor
    sin: Tensor


def pack_decoder(stack: qwen2.Qwen2Stack, max_positions: int) -> DecoderStack:
    """Pack a stack for positions below `max_positions`.

    The projections of the stack become views of the packed tensors.
    """
    like = stack.norm.weight
    positions = torch.arange(max_positions, device=like.device)[None]
    cos, sin = (table[0, 0] for table in stack.compute_tables(positions, like.dtype))
    half = cos.shape[1] // 2
    return DecoderStack(
        layers=tuple(_pack_decoder_layer(cast(qwen2.Qwen2Layer, layer)) for layer in stack.layers),
        norm=_pack_norm(stack.norm),
        # Both halves of a head rotate by the same angles.
        cos=cos[:, :half].contiguous(),
        sin=sin[:, :half].contiguous(),
    )


def _pack_decoder_layer(layer: qwen2.Qwen2Layer) -> DecoderLayer:
    attn, mlp = layer.self_attn, layer.mlp
    projections = (attn.q_proj, attn.k_proj, attn.v_proj)
    return DecoderLayer(
        norm1=_pack_norm(layer.input_layernorm),
        qkv=Linear(_join_weights(projections, "weight"), _join_weights(projections, "bias")),
        out=Linear(attn.o_proj.weight),
        norm2=_pack_norm(layer.post_attention_layernorm),
        gate_up=Linear(_join_weights((mlp.gate_proj, mlp.up_proj), "weight")),
        down=Linear(mlp.down_proj.weight),
    )


def _pack_norm(norm: qwen2.RMSNorm) -> Norm:
    return Norm(norm.weight, norm.eps)


def _join_weights(modules: tuple[nn.Linear, ...], name: str) -> Tensor:
    """Join the rows of the modules into one tensor, which the modules then share."""
    parts = [getattr(module, name) for module in modules]
    joined = torch.cat([part.data for part in parts])
    for part, rows in zip(parts, joined.split([len(part) for part in parts]), strict=True):
        part.data = rows
    return joined
