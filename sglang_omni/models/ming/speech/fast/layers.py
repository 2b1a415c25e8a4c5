"""The two kinds of transformer layers, over packed weights: flow blocks and Qwen2 layers."""

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
    """Input of the first flow block for each sampler step: residual stream, and q, k and v.

    Between the steps of one patch only the head token and the last `fresh` tokens change. For ops
    that scale with rows, q, k and v of the other tokens are computed only once.
    """

    def __init__(self, stack: FlowStack, ops: Ops, fresh: int) -> None:
        self._block, self._ops, self._fresh = stack.blocks[0], ops, fresh
        self._cached_qkv: Tensor | None = None

    def open(self, tokens: Tensor) -> tuple[Residual, Tensor]:
        """Return the residual stream of tokens [sequences, length, width], and its q, k and v.

        qkv is [sequences * length, 3 width]; the next call may overwrite it.
        """
        rows = tokens.view(-1, tokens.shape[-1])
        if self._cached_qkv is None or not self._ops.scales_with_rows:
            residual, qkv = _open_block(self._block, rows, self._ops)
            self._cached_qkv = qkv.view(*tokens.shape[:2], -1)
            return residual, qkv
        changed = torch.cat((tokens[:, :1], tokens[:, -self._fresh :]), dim=1)
        _, qkv = _open_block(self._block, changed.view(-1, rows.shape[1]), self._ops)
        qkv = qkv.view(*changed.shape[:2], -1)
        self._cached_qkv[:, :1].copy_(qkv[:, :1])
        self._cached_qkv[:, -self._fresh :].copy_(qkv[:, 1:])
        return Residual(rows), self._cached_qkv.view(len(rows), -1)


def _open_block(block: FlowBlock, rows: Tensor, ops: Ops) -> tuple[Residual, Tensor]:
    residual = ops.open(rows, block.norm1)
    return residual, ops.norm_linear(residual, block.norm1, block.qkv)


def run_flow_blocks(
    stack: FlowStack,
    tokens: Tensor,
    rows: slice,
    ops: Ops,
    tail_ops: Ops,
    first: FirstBlock | None = None,
) -> Residual:
    """Run all blocks on tokens [sequences, length, width], in place, for the output `rows`.

    The last block computes only `rows`, with `tail_ops`, which must also apply the final norm.

    Returns:
        The residual stream [sequences * rows, width] before the final norm.
    """
    sequences, length, _ = tokens.shape
    tiling, last = select_attention_tiling(sequences, length, stack.heads), stack.blocks[-1]
    residual, qkv = (first or FirstBlock(stack, ops, length)).open(tokens)
    for block, next_block in pairwise(stack.blocks):
        attended, _ = short_attention(
            qkv.view(sequences, length, -1),
            stack.cos,
            stack.sin,
            stack.heads,
            ALL_ROWS,
            tiling=tiling,
            pdl=ops.pdl,
        )
        residual = _finish_block(block, attended, residual, next_block.norm1, ops)
        qkv = ops.norm_linear(residual, next_block.norm1, next_block.qkv)
    # Add the biases that `ops` deferred if the ops of the tail will not.
    shift = last.norm1.shift if ops.defers_bias and not tail_ops.defers_bias else None
    attended, tail_rows = short_attention(
        qkv.view(sequences, length, -1),
        stack.cos,
        stack.sin,
        stack.heads,
        rows,
        tokens,
        shift,
        tiling=tiling,
        pdl=ops.pdl,
    )
    assert tail_rows is not None
    return _finish_block(last, attended, Residual(tail_rows), stack.final_norm, tail_ops)


def _finish_block(
    block: FlowBlock, attended: Tensor, residual: Residual, next_norm: Norm, ops: Ops
) -> Residual:
    """Run a block after its attention; `next_norm` is the norm after the block."""
    residual = ops.add_linear(attended, block.out, residual, block.norm2)
    return ops.add_mlp(residual, block.norm2, block.up, block.down, next_norm)


def run_decoder_layers(
    stack: DecoderStack, x: Tensor, attend: Callable[[int, Tensor], Tensor], ops: Ops
) -> Tensor:
    """Run all layers and the final norm on rows x [M, hidden], which is overwritten: [M, hidden].

    `attend` maps the number of a layer and its qkv rows to its attention output.
    """
    next_norms = [*(layer.norm1 for layer in stack.layers[1:]), stack.norm]
    residual = ops.open(x, stack.layers[0].norm1)
    for number, (layer, next_norm) in enumerate(zip(stack.layers, next_norms, strict=True)):
        qkv = ops.norm_linear(residual, layer.norm1, layer.qkv)
        residual = ops.add_linear(attend(number, qkv), layer.out, residual, layer.norm2)
        residual = ops.add_gated(residual, layer.norm2, layer.gate_up, layer.down, next_norm)
    return rms_norm(residual.x, stack.norm.gain, stack.norm.eps)
