"""Products of the flow model in eight bits: for many rows.

Weights have a scale for each output, activations one for each row; sums are float32. What a layer
adds to the residual stream is added by the kernel that normalises the stream for the next layer.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.functional import ScalingType

from sglang_omni.models.ming.speech.fast.ops import LibraryOps, Linear, Norm, Residual
from sglang_omni.models.ming.speech.kernels.fp8 import (
    Fp8Rows,
    quantize_gelu,
    quantize_norm,
    quantize_rows,
)


def multiply_fp8(x: Fp8Rows, weight: Fp8Rows, bias: Tensor | None) -> Tensor:
    """x [M, K] times weight [N, K] transposed, plus bias [N]: bfloat16 [M, N], on a CUDA device."""
    return F.scaled_mm(
        x.values,
        weight.values.T,
        x.scale,
        ScalingType.RowWise,
        weight.scale.T,
        ScalingType.RowWise,
        bias=bias,
        output_dtype=torch.bfloat16,
        use_fast_accum=True,
    )


def multiply_fp8_reference(x: Fp8Rows, weight: Fp8Rows, bias: Tensor | None) -> Tensor:
    """The same in float32, by plain operations."""
    wide, other = x.values.float() * x.scale, weight.values.float() * weight.scale
    return F.linear(wide, other, None if bias is None else bias.float())


class Fp8Ops(LibraryOps):
    """Products in eight bits where a weight has them, and those of the library elsewhere."""

    def open(self, x: Tensor, norm: Norm) -> Residual:
        return Residual(x, quantized=quantize_norm(x, norm.gain, norm.eps, norm.shift))

    def norm_linear(self, residual: Residual, norm: Norm, layer: Linear) -> Tensor:
        if layer.fp8 is None:
            return super().norm_linear(residual, norm, layer)
        assert residual.quantized is not None
        return multiply_fp8(residual.quantized, layer.fp8, layer.bias)

    def add_linear(self, y: Tensor, layer: Linear, residual: Residual, then: Norm) -> Residual:
        if layer.fp8 is None:
            return super().add_linear(y, layer, residual, then)
        return _add_residual(multiply_fp8(quantize_rows(y), layer.fp8, None), residual, then)

    def add_mlp(
        self, residual: Residual, norm: Norm, up: Linear, down: Linear, then: Norm
    ) -> Residual:
        if up.fp8 is None or down.fp8 is None:
            return super().add_mlp(residual, norm, up, down, then)
        assert residual.quantized is not None
        wide = quantize_gelu(multiply_fp8(residual.quantized, up.fp8, up.bias))
        return _add_residual(multiply_fp8(wide, down.fp8, None), residual, then)


def _add_residual(made: Tensor, residual: Residual, then: Norm) -> Residual:
    """Add to the stream in place, and normalise it for what follows."""
    return Residual(
        residual.x, quantized=quantize_norm(residual.x, then.gain, then.eps, then.shift, added=made)
    )
