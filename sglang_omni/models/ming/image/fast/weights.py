"""Weights of the transformer as the fast evaluation uses them: products in fewer, larger pieces."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from sglang_omni.models.ming.image.fast.rows import (
    FP8,
    Fp8RowLinear,
    PlainRowLinear,
    QuantizedRows,
    RowLinear,
    quantize_rows,
)


@dataclass(frozen=True)
class Block:
    """One block. Gains of the four norms are [width]; `qk_gains` are [2, head width].

    `qkv` has the rows of queries, keys and values; `gate_up` those of `w1` and `w3`.
    """

    qkv: RowLinear
    out: RowLinear
    gate_up: RowLinear
    down: RowLinear
    qk_gains: Tensor
    qk_eps: float
    attention_norm1: Tensor
    attention_norm2: Tensor
    ffn_norm1: Tensor
    ffn_norm2: Tensor
    eps: float


def take_blocks(blocks: Iterable[Any], *, fp8: bool) -> tuple[Block, ...]:
    """Convert blocks of diffusers' class, and take their large weights from them.

    Both forms never exist in full at the same time, so that one set of weights fits. Weights that
    are in FP8 already keep their values; see `build_fp8_transformer`.
    """
    return tuple(_take_block(block, fp8) for block in blocks)


def _take_block(block: Any, fp8: bool) -> Block:
    attention, ffn = block.attention, block.feed_forward
    dtype = block.attention_norm1.weight.dtype
    take: Callable[..., RowLinear] = partial(_take_fp8, dtype) if fp8 else _take_plain
    return Block(
        qkv=take(attention.to_q, attention.to_k, attention.to_v),
        out=take(attention.to_out[0]),
        gate_up=take(ffn.w1, ffn.w3),
        down=take(ffn.w2),
        qk_gains=torch.stack((attention.norm_q.weight, attention.norm_k.weight)).detach(),
        qk_eps=attention.norm_q.eps,
        attention_norm1=block.attention_norm1.weight.detach(),
        attention_norm2=block.attention_norm2.weight.detach(),
        ffn_norm1=block.ffn_norm1.weight.detach(),
        ffn_norm2=block.ffn_norm2.weight.detach(),
        eps=block.attention_norm1.eps,
    )


def _take_plain(*linears: Any) -> RowLinear:
    return PlainRowLinear(_take(*linears))


def _take_fp8(dtype: torch.dtype, *linears: Any) -> RowLinear:
    if linears[0].weight.dtype != FP8:
        return Fp8RowLinear(quantize_rows(_take(*linears)), dtype)
    scales = torch.cat([linear.weight_scale for linear in linears])
    return Fp8RowLinear(QuantizedRows(_take(*linears), scales), dtype)


def _take(*linears: Any) -> Tensor:
    """Return the rows of several weights one after the other; the layers lose them."""
    weights = [linear.weight.detach() for linear in linears]
    for linear in linears:
        linear.weight = None
    return weights[0] if len(weights) == 1 else torch.cat(weights)
