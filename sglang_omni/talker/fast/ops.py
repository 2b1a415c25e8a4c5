"""Linear layers with what surrounds them, in two forms that a batch's row count chooses between.

For few rows the products are kernels of ours, for many rows cuBLAS's.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.talker.fast.tiles import tile_for
from sglang_omni.talker.kernels.linear import Workspace, linear
from sglang_omni.talker.kernels.rows import rms_norm, silu_mul


@dataclass(frozen=True)
class Norm:
    """An RMS normalisation: gain [width], and the biases that its input has not got yet.

    `shift` [width] float32 sums the biases of all residual additions before it, for ops that
    defer them.
    """

    gain: Tensor
    eps: float
    shift: Tensor | None = None


class Ops(Protocol):
    """What a transformer layer is made of, apart from attention. Rows are contiguous [M, width]."""

    defers_bias: bool
    """Whether `add_linear` leaves its bias to the `shift` of the norms after it."""

    def norm_linear(
        self, x: Tensor, norm: Norm, weight: Tensor, bias: Tensor | None, *, gelu: bool = False
    ) -> Tensor:
        """act(norm(x) weight^T + bias)."""
        ...

    def norm_gated(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        """silu(gate) * up of norm(x), where weight holds gate rows and then up rows."""
        ...

    def add_linear(self, x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor) -> None:
        """residual += x weight^T + bias, in place; without the bias where that is deferred."""
        ...


class FusedOps:
    """Products fused with what follows them: for few rows."""

    defers_bias = False

    def __init__(self, space: Workspace) -> None:
        self._space = space

    def norm_linear(
        self, x: Tensor, norm: Norm, weight: Tensor, bias: Tensor | None, *, gelu: bool = False
    ) -> Tensor:
        tile = tile_for(x.shape[0], *weight.shape)
        out = x.new_empty(x.shape[0], weight.shape[0])
        rows = rms_norm(x, norm.gain, norm.eps)
        return linear(rows, weight, out, tile, self._space, bias=bias, gelu=gelu)

    def norm_gated(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        tile = tile_for(x.shape[0], *weight.shape)
        out = x.new_empty(x.shape[0], weight.shape[0] // 2)
        rows = rms_norm(x, norm.gain, norm.eps)
        return linear(rows, weight, out, tile, self._space, gated=True)

    def add_linear(self, x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor) -> None:
        tile = tile_for(x.shape[0], *weight.shape, split=True)
        linear(x, weight, residual, tile, self._space, bias=bias, add=True)


class LibraryOps:
    """cuBLAS products: for many rows."""

    defers_bias = True

    def norm_linear(
        self, x: Tensor, norm: Norm, weight: Tensor, bias: Tensor | None, *, gelu: bool = False
    ) -> Tensor:
        rows = rms_norm(x, norm.gain, norm.eps, norm.shift)
        if gelu:
            assert bias is not None
            return torch._addmm_activation(bias, rows, weight.T, use_gelu=True)
        return F.linear(rows, weight, bias)

    def norm_gated(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        return silu_mul(F.linear(rms_norm(x, norm.gain, norm.eps, norm.shift), weight))

    def add_linear(self, x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor) -> None:
        residual.addmm_(x, weight.T)
