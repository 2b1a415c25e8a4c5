"""What a block computes between its matrix products, in plain PyTorch.

Rows [rows, width] belong to items (images, or branches of images) of equally many consecutive
rows. A modulation is [items, width], one row for all rows of an item.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.image.fast.rope import Rope
from sglang_omni.models.ming.image.fast.rows import QuantizedRows, Rows, quantize_rows


@dataclass(frozen=True)
class RowNorm:
    """An RMS norm: its gain [width], and a modulation that scales its result, or None."""

    gain: Tensor
    eps: float
    scale: Tensor | None = None


class BlockOps(Protocol):
    """The operations between the products. With `fp8`, rows for a product are in FP8."""

    def norm(self, x: Tensor, norm: RowNorm, *, fp8: bool) -> Rows:
        """Return x [rows, width] normalised."""

    def add(self, x: Tensor, y: Tensor, norm: RowNorm) -> None:
        """Add `y`, normalised and scaled, to the residual stream `x` in place."""

    def add_and_norm(
        self, x: Tensor, y: Tensor, norm: RowNorm, following: RowNorm, *, fp8: bool
    ) -> Rows:
        """Do `add`, and return x after the norm that follows."""

    def rotate(self, qkv: Tensor, gains: Tensor, eps: float, rope: Rope) -> None:
        """Normalise each head of the queries and keys and rotate it, in place.

        Args:
            qkv: Contiguous [rows, 3, heads, head width].
            gains: The norms' gains [2, head width], of queries and of keys.
            eps: Of both norms.
            rope: Tables of the positions of one item's rows.
        """

    def gate(self, gate_up: Tensor, *, fp8: bool) -> Rows:
        """Return silu(gate) * up of [rows, 2 * width], the gate in the first half."""

    def quantize(self, x: Tensor) -> QuantizedRows:
        """Return rows in FP8."""


class TorchOps:
    """Implements `BlockOps` on any device; the reference of the fused kernels."""

    def norm(self, x: Tensor, norm: RowNorm, *, fp8: bool) -> Rows:
        """See `BlockOps`."""
        out = _normalize(x, norm).to(x.dtype)
        return quantize_rows(out) if fp8 else out

    def add(self, x: Tensor, y: Tensor, norm: RowNorm) -> None:
        """See `BlockOps`."""
        x.copy_(x.float() + _normalize(y, norm))

    def add_and_norm(
        self, x: Tensor, y: Tensor, norm: RowNorm, following: RowNorm, *, fp8: bool
    ) -> Rows:
        """See `BlockOps`."""
        self.add(x, y, norm)
        return self.norm(x, following, fp8=fp8)

    def rotate(self, qkv: Tensor, gains: Tensor, eps: float, rope: Rope) -> None:
        """See `BlockOps`."""
        heads = qkv[:, :2].float()
        heads = heads * torch.rsqrt(heads.square().mean(-1, keepdim=True) + eps)
        even, odd = (heads * gains.float()[:, None]).unflatten(-1, (-1, 2)).unbind(-1)
        repeats = len(qkv) // len(rope.cos)
        cos, sin = (table.repeat(repeats, 1)[:, None, None] for table in (rope.cos, rope.sin))
        rotated = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
        qkv[:, :2] = rotated.flatten(-2).to(qkv.dtype)

    def gate(self, gate_up: Tensor, *, fp8: bool) -> Rows:
        """See `BlockOps`."""
        gate, up = gate_up.float().chunk(2, dim=-1)
        out = (F.silu(gate) * up).to(gate_up.dtype)
        return quantize_rows(out) if fp8 else out

    def quantize(self, x: Tensor) -> QuantizedRows:
        """See `BlockOps`."""
        return quantize_rows(x)


def _normalize(x: Tensor, norm: RowNorm) -> Tensor:
    """Return x [rows, width] normalised, in float32."""
    values = x.float()
    values = values * torch.rsqrt(values.square().mean(-1, keepdim=True) + norm.eps)
    values = values * norm.gain.float()
    if norm.scale is None:
        return values
    return (values.unflatten(0, (len(norm.scale), -1)) * norm.scale.float()[:, None]).flatten(0, 1)
