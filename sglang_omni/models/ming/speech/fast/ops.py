"""Linear layers with what surrounds them, in forms that a batch's row count chooses between.

For few rows the products are kernels of ours, for many rows cuBLAS's; `fp8.py` has a third form.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech.fast.tiling import select_linear_tile
from sglang_omni.models.ming.speech.kernels.fp8 import Fp8Rows
from sglang_omni.models.ming.speech.kernels.linear import FusedNormInput, linear, prepare_norm_input
from sglang_omni.models.ming.speech.kernels.rows import rms_norm, silu_mul


@dataclass(frozen=True)
class Linear:
    """A linear layer: weight [outputs, inputs], bias [outputs] if it has one, and its weight in
    eight bits where that was asked."""

    weight: Tensor
    bias: Tensor | None = None
    fp8: Fp8Rows | None = None

    @property
    def outputs(self) -> int:
        """Width of what the layer makes."""
        return self.weight.shape[0]


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
    """The residual stream x [M, width], and its next normalisation where some ops prepared that:
    `norm_input` between two products, or `quantized`, complete and in eight bits."""

    x: Tensor
    norm_input: FusedNormInput | None = None
    quantized: Fp8Rows | None = None


class Ops(Protocol):
    """What a transformer layer is made of, apart from attention. Rows are contiguous [M, width].

    What is added to the residual stream is added in place, without its bias where these ops defer
    that; `then` is the norm that follows. The norm given beside a residual is the one that its last
    addition, or its opening, was told of.
    """

    pdl: bool
    """Whether kernels start before the one in front of them has ended."""
    scales_with_rows: bool
    """Whether fewer rows take less time."""
    defers_bias: bool
    """Whether biases added to the residual stream are left to the `shift` of the norms after."""

    def open(self, x: Tensor, norm: Norm) -> Residual:
        """Begin a residual stream, which will be normalised by `norm` first."""
        ...

    def norm_linear(self, residual: Residual, norm: Norm, layer: Linear) -> Tensor:
        """layer(norm(x))."""
        ...

    def add_linear(self, y: Tensor, layer: Linear, residual: Residual, then: Norm) -> Residual:
        """x += layer(y)."""
        ...

    def add_mlp(
        self, residual: Residual, norm: Norm, up: Linear, down: Linear, then: Norm
    ) -> Residual:
        """x += down(gelu(up(norm(x))))."""
        ...

    def add_gated(
        self, residual: Residual, norm: Norm, gate_up: Linear, down: Linear, then: Norm
    ) -> Residual:
        """x += down(silu(gate) * up) of norm(x), where gate_up holds gate rows, then up rows."""
        ...


class FusedOps:
    """Products fused with what is around them: for few rows."""

    scales_with_rows = False
    defers_bias = False

    def __init__(self, space: Workspace, *, pdl: bool = False) -> None:
        self._space, self.pdl = space, pdl

    def open(self, x: Tensor, norm: Norm) -> Residual:
        return Residual(x, prepare_norm_input(x, norm.gain, norm.eps, pdl=self.pdl))

    def norm_linear(self, residual: Residual, norm: Norm, layer: Linear) -> Tensor:
        return self._product(residual, layer, layer.outputs)

    def add_linear(self, y: Tensor, layer: Linear, residual: Residual, then: Norm) -> Residual:
        tile = select_linear_tile(y.shape[0], *layer.weight.shape, split=True)
        carried = linear(
            y,
            layer.weight,
            residual.x,
            tile,
            self._space,
            bias=layer.bias,
            add=True,
            then=(then.gain, then.eps),
            pdl=self.pdl,
        )
        return Residual(residual.x, carried)

    def add_mlp(
        self, residual: Residual, norm: Norm, up: Linear, down: Linear, then: Norm
    ) -> Residual:
        wide = self._product(residual, up, up.outputs, gelu=True)
        return self.add_linear(wide, down, residual, then)

    def add_gated(
        self, residual: Residual, norm: Norm, gate_up: Linear, down: Linear, then: Norm
    ) -> Residual:
        wide = self._product(residual, gate_up, gate_up.outputs // 2, gated=True)
        return self.add_linear(wide, down, residual, then)

    def _product(
        self,
        residual: Residual,
        layer: Linear,
        width: int,
        *,
        gelu: bool = False,
        gated: bool = False,
    ) -> Tensor:
        """act(layer(norm(x))), [M, width]."""
        assert residual.norm_input is not None
        out = residual.x.new_empty(residual.x.shape[0], width)
        tile = select_linear_tile(out.shape[0], *layer.weight.shape)
        linear(
            residual.norm_input,
            layer.weight,
            out,
            tile,
            self._space,
            bias=layer.bias,
            gelu=gelu,
            gated=gated,
            pdl=self.pdl,
        )
        return out


class LibraryOps:
    """cuBLAS products: for many rows."""

    pdl = False
    scales_with_rows = True
    defers_bias = True

    def open(self, x: Tensor, norm: Norm) -> Residual:
        return Residual(x)

    def norm_linear(self, residual: Residual, norm: Norm, layer: Linear) -> Tensor:
        return F.linear(_normalize(residual, norm), layer.weight, layer.bias)

    def add_linear(self, y: Tensor, layer: Linear, residual: Residual, then: Norm) -> Residual:
        residual.x.addmm_(y, layer.weight.T)
        return Residual(residual.x)

    def add_mlp(
        self, residual: Residual, norm: Norm, up: Linear, down: Linear, then: Norm
    ) -> Residual:
        assert up.bias is not None
        rows = _normalize(residual, norm)
        wide = torch._addmm_activation(up.bias, rows, up.weight.T, use_gelu=True)
        return self.add_linear(wide, down, residual, then)

    def add_gated(
        self, residual: Residual, norm: Norm, gate_up: Linear, down: Linear, then: Norm
    ) -> Residual:
        wide = silu_mul(F.linear(_normalize(residual, norm), gate_up.weight))
        return self.add_linear(wide, down, residual, then)


def _normalize(residual: Residual, norm: Norm) -> Tensor:
    return rms_norm(residual.x, norm.gain, norm.eps, norm.shift)
