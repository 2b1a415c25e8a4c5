"""FP8 matrix products of the flow model, for large batches.

Weights have one scale per output, activations one per row; sums are float32. The output of a
layer is added to the residual stream by the kernel that normalises the stream for the next layer.
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
    """Return x [M, K] times weight [N, K] transposed plus bias [N], bfloat16 [M, N]; CUDA only."""
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
    """Return the same product in float32 by plain PyTorch operations."""
    x_f32, weight_f32 = x.values.float() * x.scale, weight.values.float() * weight.scale
    return F.linear(x_f32, weight_f32, None if bias is None else bias.float())


class Fp8Ops(LibraryOps):
    """Use FP8 products for layers with FP8 weights, cuBLAS products for the others."""

    def open(self, x: Tensor, norm: Norm) -> Residual:
        """Start a residual stream, and quantize its norm at once."""
        return Residual(x, quantized=quantize_norm(x, norm.gain, norm.eps, norm.shift))

    def norm_linear(self, residual: Residual, norm: Norm, layer: Linear) -> Tensor:
        """Return layer(norm(x)) from the quantized norm, if the layer has FP8 weights."""
        if layer.fp8 is None:
            return super().norm_linear(residual, norm, layer)
        assert residual.quantized is not None
        return multiply_fp8(residual.quantized, layer.fp8, layer.bias)

    def add_linear(self, y: Tensor, layer: Linear, residual: Residual, next_norm: Norm) -> Residual:
        """Compute x += layer(y), and quantize the next norm, if the layer has FP8 weights."""
        if layer.fp8 is None:
            return super().add_linear(y, layer, residual, next_norm)
        return _add_residual(multiply_fp8(quantize_rows(y), layer.fp8, None), residual, next_norm)

    def add_mlp(
        self, residual: Residual, norm: Norm, up: Linear, down: Linear, next_norm: Norm
    ) -> Residual:
        """Compute x += down(gelu(up(norm(x)))) in FP8, if both layers have FP8 weights."""
        if up.fp8 is None or down.fp8 is None:
            return super().add_mlp(residual, norm, up, down, next_norm)
        assert residual.quantized is not None
        hidden = quantize_gelu(multiply_fp8(residual.quantized, up.fp8, up.bias))
        return _add_residual(multiply_fp8(hidden, down.fp8, None), residual, next_norm)


def _add_residual(update: Tensor, residual: Residual, next_norm: Norm) -> Residual:
    """Add `update` to the residual stream in place, and normalise the stream for the next layer."""
    return Residual(
        residual.x,
        quantized=quantize_norm(
            residual.x, next_norm.gain, next_norm.eps, next_norm.shift, added=update
        ),
    )
