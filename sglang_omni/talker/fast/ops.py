"""Linear layers with what surrounds them, in two forms that a batch's row count chooses between.

For few rows the products are kernels of ours, for many rows cuBLAS's.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.talker.fast.tiles import tile_for
from sglang_omni.talker.kernels.linear import Carried, Workspace, carry, linear
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


@dataclass(frozen=True)
class Residual:
    """The residual stream x [M, width], and its next normalisation where that is carried."""

    x: Tensor
    carried: Carried | None = None


class Ops(Protocol):
    """What a transformer layer is made of, apart from attention. Rows are contiguous [M, width]."""

    defers_bias: bool
    """Whether `add_linear` leaves its bias to the `shift` of the norms after it."""

    def open(self, x: Tensor, norm: Norm) -> Residual:
        """Begin a residual stream, which will be normalised by `norm` first."""
        ...

    def norm_linear(
        self,
        residual: Residual,
        norm: Norm,
        weight: Tensor,
        bias: Tensor | None,
        *,
        gelu: bool = False,
    ) -> Tensor:
        """act(norm(x) weight^T + bias)."""
        ...

    def norm_gated(self, residual: Residual, norm: Norm, weight: Tensor) -> Tensor:
        """silu(gate) * up of norm(x), where weight holds gate rows and then up rows."""
        ...

    def add_linear(
        self, y: Tensor, weight: Tensor, bias: Tensor | None, residual: Residual, then: Norm
    ) -> Residual:
        """x += y weight^T + bias, in place; without the bias where that is deferred.

        `then` is the norm that follows.
        """
        ...


class FusedOps:
    """Products fused with what is around them: for few rows."""

    defers_bias = False

    def __init__(self, space: Workspace) -> None:
        self._space = space

    def open(self, x: Tensor, norm: Norm) -> Residual:
        return Residual(x, carry(x, norm.gain, norm.eps))

    def norm_linear(
        self,
        residual: Residual,
        norm: Norm,
        weight: Tensor,
        bias: Tensor | None,
        *,
        gelu: bool = False,
    ) -> Tensor:
        assert residual.carried is not None
        out = residual.x.new_empty(residual.x.shape[0], weight.shape[0])
        tile = tile_for(out.shape[0], *weight.shape)
        linear(
            residual.carried,
            weight,
            out,
            tile,
            self._space,
            bias=bias,
            gelu=gelu,
        )
        return out

    def norm_gated(self, residual: Residual, norm: Norm, weight: Tensor) -> Tensor:
        assert residual.carried is not None
        out = residual.x.new_empty(residual.x.shape[0], weight.shape[0] // 2)
        tile = tile_for(out.shape[0], *weight.shape)
        linear(residual.carried, weight, out, tile, self._space, gated=True)
        return out

    def add_linear(
        self, y: Tensor, weight: Tensor, bias: Tensor | None, residual: Residual, then: Norm
    ) -> Residual:
        tile = tile_for(y.shape[0], *weight.shape, split=True)
        carried = linear(
            y,
            weight,
            residual.x,
            tile,
            self._space,
            bias=bias,
            add=True,
            then=(then.gain, then.eps),
        )
        return Residual(residual.x, carried)


class LibraryOps:
    """cuBLAS products: for many rows."""

    defers_bias = True

    def open(self, x: Tensor, norm: Norm) -> Residual:
        return Residual(x)

    def norm_linear(
        self,
        residual: Residual,
        norm: Norm,
        weight: Tensor,
        bias: Tensor | None,
        *,
        gelu: bool = False,
    ) -> Tensor:
        rows = rms_norm(residual.x, norm.gain, norm.eps, norm.shift)
        if gelu:
            assert bias is not None
            return torch._addmm_activation(bias, rows, weight.T, use_gelu=True)
        return F.linear(rows, weight, bias)

    def norm_gated(self, residual: Residual, norm: Norm, weight: Tensor) -> Tensor:
        rows = rms_norm(residual.x, norm.gain, norm.eps, norm.shift)
        return silu_mul(F.linear(rows, weight))

    def add_linear(
        self, y: Tensor, weight: Tensor, bias: Tensor | None, residual: Residual, then: Norm
    ) -> Residual:
        residual.x.addmm_(y, weight.T)
        return residual
