"""Rows of activations, and the products of rows with weights: plain or in FP8.

FP8 has one scale per row of the activations, and one per row of the weight (float8_e4m3fn).
"""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0
MIN_AMAX = 1e-12


@dataclass(frozen=True)
class QuantizedRows:
    """Rows in FP8: `data` [rows, width], and float32 `scales` [rows, 1] to multiply it by."""

    data: Tensor
    scales: Tensor


Rows = Tensor | QuantizedRows
"""Activations [rows, width]."""


class RowLinear(Protocol):
    """A product with a weight [out, in] without a bias."""

    def __call__(self, x: Rows) -> Tensor:
        """Return [rows, out] in the model's dtype."""


def quantize_rows(x: Tensor) -> QuantizedRows:
    """Quantize rows [rows, width]: the largest magnitude of each becomes that of the format."""
    values = x.float()
    amax = values.abs().amax(dim=1, keepdim=True).clamp(min=MIN_AMAX)
    return QuantizedRows((values * (FP8_MAX / amax)).to(FP8), amax / FP8_MAX)


@dataclass(frozen=True)
class PlainRowLinear:
    """Implements `RowLinear` in the dtype of the weight."""

    weight: Tensor

    def __call__(self, x: Rows) -> Tensor:
        """See `RowLinear`."""
        assert isinstance(x, Tensor)
        return F.linear(x, self.weight)


class Fp8RowLinear:
    """Implements `RowLinear` for rows in FP8. A CPU multiplies the dequantized values instead."""

    def __init__(self, weight: QuantizedRows, dtype: torch.dtype) -> None:
        """Take a weight [out, in], and the dtype of the products."""
        self._dtype = dtype
        self._data, self._scales = weight.data, weight.scales.t().contiguous()

    def __call__(self, x: Rows) -> Tensor:
        """See `RowLinear`."""
        assert isinstance(x, QuantizedRows)
        if self._data.device.type == "cpu":
            product = F.linear(x.data.float(), self._data.float())
            return (product * x.scales * self._scales).to(self._dtype)
        return torch._scaled_mm(
            x.data,
            self._data.t(),
            scale_a=x.scales,
            scale_b=self._scales,
            out_dtype=self._dtype,
            use_fast_accum=True,
        )
