"""The two kinds of transformer, over packed weights: flow blocks and Qwen2 layers."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from sglang_omni.models.ming.speech.fast.ops import Norm, Ops, Residual
from sglang_omni.models.ming.speech.fast.packed import DecoderStack, FlowBlock, FlowStack
from sglang_omni.models.ming.speech.fast.tiling import select_attention_tiling
from sglang_omni.models.ming.speech.kernels.attention import short_attention
from sglang_omni.models.ming.speech.kernels.rows import rms_norm

ALL_ROWS = slice(None)


class FirstBlock:
    """What enters the first block of a flow, step by step: the stream, and its q, k and v.

    Between the steps of one patch only the head token and the last `fresh` ones change, so of the
    others q, k and v are computed once, by ops to which that makes a difference.
    """

    def __init__(self, stack: FlowStack, ops: Ops, fresh: int) -> None:
        self._block, self._ops, self._fresh = stack.blocks[0], ops, fresh
        self._kept: Tensor | None = None

    def open(self, tokens: Tensor) -> tuple[Residual, Tensor]:
        """The stream of tokens [sequences, length, width], and qkv [sequences * length, 3 width].

        The next call overwrites that qkv where it keeps the rest.
        """
        rows = tokens.view(-1, tokens.shape[-1])
        if self._kept is None or not self._ops.scales_with_rows:
            residual, qkv = _open_block(self._block, rows, self._ops)
            self._kept = qkv.view(*tokens.shape[:2], -1)
            return residual, qkv
        changed = torch.cat((tokens[:, :1], tokens[:, -self._fresh :]), dim=1)
        _, qkv = _open_block(self._block, changed.view(-1, rows.shape[1]), self._ops)
        qkv = qkv.view(*changed.shape[:2], -1)
        self._kept[:, :1].copy_(qkv[:, :1])
        self._kept[:, -self._fresh :].copy_(qkv[:, 1:])
        return Residual(rows), self._kept.view(len(rows), -1)


def _open_block(block: FlowBlock, rows: Tensor, ops: Ops) -> tuple[Residual, Tensor]:
    residual = ops.open(rows, block.norm1)
    return residual, ops.norm_linear(residual, block.norm1, block.qkv)


def run_flow_blocks(
    stack: FlowStack,
    tokens: Tensor,
    rows: slice,
    ops: Ops,
    tail: Ops,
    first: FirstBlock | None = None,
) -> Residual:
    """All blocks over tokens [sequences, length, width], in place; the chosen `rows` at the end.

    Returns the stream [sequences * rows, width] before the final norm, which the ops `tail` must
    apply: the last block computes the chosen rows alone, by those ops.
    """
    sequences, length, _ = tokens.shape
    cut, last = select_attention_tiling(sequences, length, stack.heads), stack.blocks[-1]
    residual, qkv = (first or FirstBlock(stack, ops, length)).open(tokens)
    for block, after in pairwise(stack.blocks):
        mixed, _ = short_attention(
            qkv.view(sequences, length, -1),
            stack.cos,
            stack.sin,
            stack.heads,
            ALL_ROWS,
            cut=cut,
            pdl=ops.pdl,
        )
        residual = _finish_block(block, mixed, residual, after.norm1, ops)
        qkv = ops.norm_linear(residual, after.norm1, after.qkv)
    # What these ops left out of the residual stream, those of the tail will not make up for.
    shift = last.norm1.shift if ops.defers_bias and not tail.defers_bias else None
    mixed, kept = short_attention(
        qkv.view(sequences, length, -1),
        stack.cos,
        stack.sin,
        stack.heads,
        rows,
        tokens,
        shift,
        cut=cut,
        pdl=ops.pdl,
    )
    assert kept is not None
    return _finish_block(last, mixed, Residual(kept), stack.final_norm, tail)


def _finish_block(
    block: FlowBlock, mixed: Tensor, residual: Residual, then: Norm, ops: Ops
) -> Residual:
    """What follows the attention of a block; `then` is the norm after the block."""
    residual = ops.add_linear(mixed, block.out, residual, block.norm2)
    return ops.add_mlp(residual, block.norm2, block.up, block.down, then)


def run_decoder_layers(
    stack: DecoderStack, x: Tensor, attend: Callable[[int, Tensor], Tensor], ops: Ops
) -> Tensor:
    """All layers and the final norm over rows x [M, hidden], which is overwritten: [M, hidden].

    `attend` maps a layer's number and its qkv rows to the rows of its attention.
    """
    thens = [*(layer.norm1 for layer in stack.layers[1:]), stack.norm]
    residual = ops.open(x, stack.layers[0].norm1)
    for number, (layer, then) in enumerate(zip(stack.layers, thens, strict=True)):
        qkv = ops.norm_linear(residual, layer.norm1, layer.qkv)
        residual = ops.add_linear(attend(number, qkv), layer.out, residual, layer.norm2)
        residual = ops.add_gated(residual, layer.norm2, layer.gate_up, layer.down, then)
    return rms_norm(residual.x, stack.norm.gain, stack.norm.eps)
