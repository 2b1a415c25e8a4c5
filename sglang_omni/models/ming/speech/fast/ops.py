"""Linear layers fused with their surroundings; the row count of a batch selects the form.

Small batches use the fused kernels of this package, large batches cuBLAS; `fp8.py` has a third
form.
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
    """A linear layer: weight [outputs, inputs] and optional bias [outputs].

    `fp8` is the quantized weight, where FP8 is enabled.
    """

    weight: Tensor
    bias: Tensor | None = None
    fp8: Fp8Rows | None = None

    @property
    def outputs(self) -> int:
        """Return the output width of the layer."""
        return self.weight.shape[0]


@dataclass(frozen=True)
class Norm:
    """An RMS norm: gain [width], and the biases that its input lacks.

    `shift` float32 [width] is the sum of the biases of all residual additions before the norm, for
    ops that defer biases.
    """

    gain: Tensor
    eps: float
    shift: Tensor | None = None


@dataclass(frozen=True)
class Residual:
    """The residual stream x [M, width], and its prepared normalisation, where ops prepare one.

    `norm_input` is the input of a norm fused into two products; `quantized` is the complete norm in
    FP8.
    """

    x: Tensor
    norm_input: FusedNormInput | None = None
    quantized: Fp8Rows | None = None


class Ops(Protocol):
    """The operations of a transformer layer, apart from attention. Rows are contiguous [M, width].

    Additions to the residual stream are in place, without the bias where the ops defer biases.
    `next_norm` is the norm after an addition. The norm passed with a residual is the `next_norm` of
    its last addition, or the norm it was opened with.
    """

    pdl: bool
    """Whether kernels use programmatic dependent launch."""
    scales_with_rows: bool
    """Whether fewer rows take less time."""
    defers_bias: bool
    """Whether biases of residual additions are deferred to the `shift` of later norms."""

    def open(self, x: Tensor, norm: Norm) -> Residual:
        """Start a residual stream, to be normalised by `norm` first."""
        ...

    def norm_linear(self, residual: Residual, norm: Norm, layer: Linear) -> Tensor:
        """Return layer(norm(x))."""
        ...

    def add_linear(self, y: Tensor, layer: Linear, residual: Residual, next_norm: Norm) -> Residual:
        """Compute x += layer(y)."""
        ...

    def add_mlp(
        self, residual: Residual, norm: Norm, up: Linear, down: Linear, next_norm: Norm
    ) -> Residual:
        """Compute x += down(gelu(up(norm(x))))."""
        ...

    def add_gated(
        self, residual: Residual, norm: Norm, gate_up: Linear, down: Linear, next_norm: Norm
    ) -> Residual:
        """Compute x += down(silu(gate) * up) of norm(x); gate_up has gate rows, then up rows."""
        ...


class FusedOps:
    """Matrix products fused with the operations around them, for small batches."""

    scales_with_rows = False
    defers_bias = False

    def __init__(self, workspace: Workspace, *, pdl: bool = False) -> None:
        self._workspace, self.pdl = workspace, pdl

    def open(self, x: Tensor, norm: Norm) -> Residual:
        """Start a residual stream, and prepare its norm for the next product."""
        return Residual(x, prepare_norm_input(x, norm.gain, norm.eps, pdl=self.pdl))

    def norm_linear(self, residual: Residual, norm: Norm, layer: Linear) -> Tensor:
        """Return layer(norm(x)) by one kernel."""
        return self._apply_linear(residual, layer, layer.outputs)

    def add_linear(self, y: Tensor, layer: Linear, residual: Residual, next_norm: Norm) -> Residual:
        """Compute x += layer(y), and prepare the next norm, by one kernel."""
        tile = select_linear_tile(y.shape[0], *layer.weight.shape, split=True)
        norm_input = linear(
            y,
            layer.weight,
            residual.x,
            tile,
            self._workspace,
            bias=layer.bias,
            add=True,
            next_norm=(next_norm.gain, next_norm.eps),
            pdl=self.pdl,
        )
        return Residual(residual.x, norm_input)

    def add_mlp(
        self, residual: Residual, norm: Norm, up: Linear, down: Linear, next_norm: Norm
    ) -> Residual:
        """Compute x += down(gelu(up(norm(x)))) by two kernels."""
        hidden = self._apply_linear(residual, up, up.outputs, gelu=True)
        return self.add_linear(hidden, down, residual, next_norm)

    def add_gated(
        self, residual: Residual, norm: Norm, gate_up: Linear, down: Linear, next_norm: Norm
    ) -> Residual:
        """Compute x += down(silu(gate) * up) of norm(x) by two kernels."""
        hidden = self._apply_linear(residual, gate_up, gate_up.outputs // 2, gated=True)
        return self.add_linear(hidden, down, residual, next_norm)

    def _apply_linear(
        self,
        residual: Residual,
        layer: Linear,
        width: int,
        *,
        gelu: bool = False,
        gated: bool = False,
    ) -> Tensor:
        """Return act(layer(norm(x))), [M, width]."""
        assert residual.norm_input is not None
        out = residual.x.new_empty(residual.x.shape[0], width)
        tile = select_linear_tile(out.shape[0], *layer.weight.shape)
        linear(
            residual.norm_input,
            layer.weight,
            out,
            tile,
            self._workspace,
            bias=layer.bias,
            gelu=gelu,
            gated=gated,
            pdl=self.pdl,
        )
        return out


class LibraryOps:
    """cuBLAS matrix products, for large batches."""

    pdl = False
    scales_with_rows = True
    defers_bias = True

    def open(self, x: Tensor, norm: Norm) -> Residual:
        """Start a residual stream; its norm is computed when it is needed."""
        return Residual(x)

    def norm_linear(self, residual: Residual, norm: Norm, layer: Linear) -> Tensor:
        """Return layer(norm(x))."""
        return F.linear(_normalize(residual, norm), layer.weight, layer.bias)

    def add_linear(self, y: Tensor, layer: Linear, residual: Residual, next_norm: Norm) -> Residual:
        """Compute x += layer(y) without the bias, which is deferred to later norms."""
        residual.x.addmm_(y, layer.weight.T)
        return Residual(residual.x)

    def add_mlp(
        self, residual: Residual, norm: Norm, up: Linear, down: Linear, next_norm: Norm
    ) -> Residual:
        """Compute x += down(gelu(up(norm(x)))); cuBLAS applies the GELU."""
        assert up.bias is not None
        normalized = _normalize(residual, norm)
        hidden = torch._addmm_activation(up.bias, normalized, up.weight.T, use_gelu=True)
        return self.add_linear(hidden, down, residual, next_norm)

    def add_gated(
        self, residual: Residual, norm: Norm, gate_up: Linear, down: Linear, next_norm: Norm
    ) -> Residual:
        """Compute x += down(silu(gate) * up) of norm(x)."""
        hidden = silu_mul(F.linear(_normalize(residual, norm), gate_up.weight))
        return self.add_linear(hidden, down, residual, next_norm)


def _normalize(residual: Residual, norm: Norm) -> Tensor:
    return rms_norm(residual.x, norm.gain, norm.eps, norm.shift)
