"""The flow model in fewer operations, for a CPU, and the sampler that uses it.

A small flow model spends much of its time on a CPU between its matrix products. Here query, key and
value are one product, a rotation is one complex product for queries and keys together, and the
weights of a norm are part of the matrix that follows it. The arithmetic is that of `dit.py` but for
rounding; tests compare the two. The bundled model's sampler takes 0.7 of the time. The blocks'
weights are held a second time, beside those of the plain model.
"""

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.speech.cfm import CFM
from sglang_omni.models.ming.speech.dit import ALL_ROWS, NORM_EPS, DiT, DiTBlock


@dataclass(frozen=True)
class PackedLinear:
    """A linear layer as the operands of `addmm`: `weight` [inputs, outputs] and `bias`."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def pack(cls, *layers: nn.Linear, norm: Tensor | None = None) -> "PackedLinear":
        """Return layers side by side, after a norm with weights `norm`."""
        weight = torch.cat([layer.weight for layer in layers])
        bias = torch.cat([layer.bias for layer in layers])
        return cls((weight if norm is None else weight * norm).T.contiguous(), bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Return [rows, outputs] of x [rows, inputs]."""
        return torch.addmm(self.bias, x, self.weight)


class PackedBlock:
    """The arithmetic of one `DiTBlock`, with packed weights."""

    def __init__(self, block: DiTBlock) -> None:
        attention, layers = block.attn, block.mlp.ff
        widen = cast(nn.Linear, cast(nn.Sequential, layers[0])[0])
        out, narrow = cast(nn.Linear, attention.to_out[0]), cast(nn.Linear, layers[2])
        self._heads = attention.heads
        self._qkv = PackedLinear.pack(
            attention.to_q, attention.to_k, attention.to_v, norm=block.norm1.weight
        )
        self._out = PackedLinear.pack(out)
        self._widen = PackedLinear.pack(widen, norm=block.norm2.weight)
        self._narrow = PackedLinear.pack(narrow)

    def forward(self, x: Tensor, rotary: Tensor, rows: slice) -> Tensor:
        """Return `rows` of the block output for x [batch, time, hidden].

        `rotary` [time, 1, 1, pairs] is cos + i sin of every position and frequency.
        """
        batch, time, width = x.shape
        qkv = self._qkv(_normalise(x.view(-1, width))).view(batch, time, 3, self._heads, -1)
        pairs = torch.view_as_complex(qkv[:, :, :2].unflatten(-1, (-1, 2)))
        rotated = torch.view_as_real(pairs * rotary).flatten(-2).transpose(1, 3)
        q, k = rotated[:, :, 0, rows], rotated[:, :, 1]
        out = F.scaled_dot_product_attention(q, k, qkv[:, :, 2].transpose(1, 2))
        out = self._out(out.transpose(1, 2).reshape(-1, width))
        y = x[:, rows].reshape(-1, width) + out
        return (y + self._feed_forward(y)).view(batch, -1, width)

    def _feed_forward(self, y: Tensor) -> Tensor:
        return self._narrow(F.gelu(self._widen(_normalise(y)), approximate="tanh"))


def _normalise(x: Tensor) -> Tensor:
    """Return the RMS norm of x [rows, width] without weights."""
    return F.rms_norm(x, x.shape[-1:], None, NORM_EPS)


class PackedDiT(DiT):
    """A flow model that shares all but its blocks with the one that it is made from."""

    def __init__(self, plain: DiT) -> None:
        nn.Module.__init__(self)
        self.x_embedder, self.final_layer = plain.x_embedder, plain.final_layer
        self.t_embedder, self.c_embedder = plain.t_embedder, plain.c_embedder
        self.rotary_embed = plain.rotary_embed
        self._packed = [PackedBlock(cast(DiTBlock, block)) for block in plain.blocks]

    def read_out(self, tokens: Tensor, rows: slice) -> Tensor:
        """Return [batch, rows, out] of tokens [batch, time, hidden]; see `BlockStack.read_out`."""
        cos, sin = (table[:, None, None, ::2] for table in self.rotary_embed(tokens.shape[1]))
        rotary = torch.complex(cos, sin)
        *body, last = self._packed
        for block in body:
            tokens = block.forward(tokens, rotary, ALL_ROWS)
        return self.final_layer(last.forward(tokens, rotary, rows))


class PackedCFM(CFM):
    """The sampler of a `CFM` with a packed flow model; `plain` is on a CPU, in float32."""

    def __init__(self, plain: CFM) -> None:
        nn.Module.__init__(self)
        self.model, self.steps = PackedDiT(plain.model), plain.steps
