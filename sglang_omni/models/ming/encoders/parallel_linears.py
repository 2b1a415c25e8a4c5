"""The linear maps of the vision encoder on SGLang's parallel layers.

They are made under whatever tensor-parallel group the process has joined.
"""

from sglang.srt.layers.linear import ColumnParallelLinear, QKVParallelLinear, RowParallelLinear
from sglang.srt.layers.quantization.base_config import QuantizationConfig
from torch import nn


class ParallelLinears:
    """A `Linears`: SGLang's layers, quantised if `quant_config` says so."""

    def __init__(self, quant_config: QuantizationConfig | None = None) -> None:
        self._quant_config = quant_config

    def qkv(self, hidden: int, heads: int, head_dim: int, prefix: str) -> nn.Module:
        """Queries, keys and values of this rank's heads, side by side."""
        return QKVParallelLinear(
            hidden, head_dim, heads, quant_config=self._quant_config, prefix=prefix
        )

    def column(self, size: int, out: int, prefix: str) -> nn.Module:
        """A map whose outputs are split over the ranks."""
        return ColumnParallelLinear(size, out, quant_config=self._quant_config, prefix=prefix)

    def row(self, size: int, out: int, prefix: str) -> nn.Module:
        """A map whose inputs are split over the ranks; its outputs are whole on every rank."""
        return RowParallelLinear(size, out, quant_config=self._quant_config, prefix=prefix)
