"""The two kinds of transformer, over packed weights: flow blocks and Qwen2 layers."""

from collections.abc import Callable

from torch import Tensor

from sglang_omni.talker.fast.ops import Ops
from sglang_omni.talker.fast.packed import DecoderStack, FlowBlock, FlowStack
from sglang_omni.talker.kernels.attention import short_attention

ALL_ROWS = slice(None)


def run_flow_blocks(stack: FlowStack, tokens: Tensor, rows: slice, ops: Ops, tail: Ops) -> Tensor:
    """All blocks over tokens [sequences, length, width], in place; the chosen `rows` at the end.

    Returns [sequences * rows, width], before the final norm. The last block computes the chosen
    rows alone, by the ops `tail`, as the final norm must be.
    """
    sequences, length, width = tokens.shape
    x = tokens.view(-1, width)
    *body, last = stack.blocks
    for block in body:
        qkv = ops.norm_linear(x, block.norm1, block.qkv, block.qkv_bias)
        qkv = qkv.view(sequences, length, -1)
        mixed, _ = short_attention(qkv, stack.cos, stack.sin, stack.heads, ALL_ROWS)
        _close_block(block, mixed, x, ops)
    qkv = ops.norm_linear(x, last.norm1, last.qkv, last.qkv_bias).view(sequences, length, -1)
    # What these ops left out of the residual stream, those of the tail will not make up for.
    shift = last.norm1.shift if ops.defers_bias and not tail.defers_bias else None
    mixed, kept = short_attention(qkv, stack.cos, stack.sin, stack.heads, rows, tokens, shift)
    assert kept is not None
    _close_block(last, mixed, kept, tail)
    return kept


def _close_block(block: FlowBlock, mixed: Tensor, x: Tensor, ops: Ops) -> None:
    """What follows the attention of a block, in place."""
    ops.add_linear(mixed, block.out, block.out_bias, x)
    wide = ops.norm_linear(x, block.norm2, block.up, block.up_bias, gelu=True)
    ops.add_linear(wide, block.down, block.down_bias, x)


def run_decoder_layers(
    stack: DecoderStack, x: Tensor, attend: Callable[[int, Tensor], Tensor], ops: Ops
) -> None:
    """All layers over rows x [M, hidden], in place; the final norm is left to the caller.

    `attend` maps a layer's number and its qkv rows to the rows of its attention.
    """
    for number, layer in enumerate(stack.layers):
        qkv = ops.norm_linear(x, layer.norm1, layer.qkv, layer.qkv_bias)
        ops.add_linear(attend(number, qkv), layer.out, None, x)
        ops.add_linear(ops.norm_gated(x, layer.norm2, layer.gate_up), layer.down, None, x)
