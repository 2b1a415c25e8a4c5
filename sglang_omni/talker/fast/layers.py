"""The two kinds of transformer, over packed weights: flow blocks and Qwen2 layers."""

from collections.abc import Callable

from torch import Tensor

from sglang_omni.talker.fast.ops import Ops
from sglang_omni.talker.fast.packed import DecoderStack, FlowStack
from sglang_omni.talker.kernels.attention import short_attention

ALL_ROWS = slice(None)


def run_flow_blocks(stack: FlowStack, tokens: Tensor, rows: slice, ops: Ops) -> Tensor:
    """All blocks over tokens [sequences, length, width], in place; the chosen `rows` at the end.

    Returns [sequences * rows, width], before the final norm. The last block computes the chosen
    rows alone.
    """
    sequences, length, width = tokens.shape
    x = tokens.view(-1, width)
    for number, block in enumerate(stack.blocks):
        qkv = ops.norm_linear(x, block.norm1, block.qkv, block.qkv_bias)
        qkv = qkv.view(sequences, length, -1)
        if number + 1 < len(stack.blocks):
            mixed, _ = short_attention(qkv, stack.cos, stack.sin, stack.heads, ALL_ROWS)
        else:
            mixed, tail = short_attention(qkv, stack.cos, stack.sin, stack.heads, rows, tokens)
            assert tail is not None
            x = tail
        ops.add_linear(mixed, block.out, block.out_bias, x)
        wide = ops.norm_linear(x, block.norm2, block.up, block.up_bias, gelu=True)
        ops.add_linear(wide, block.down, block.down_bias, x)
    return x


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
