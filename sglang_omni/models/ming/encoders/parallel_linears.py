"""Linear layers of the vision encoder on SGLang's parallel layers.

They use the tensor-parallel group that the process has joined.
"""

from sglang.srt.layers.linear import ColumnParallelLinear, QKVParallelLinear, RowParallelLinear
from sglang.srt.layers.quantization.base_config import QuantizationConfig
from torch import nn


class ParallelLinears:
    """`Linears` of SGLang's layers, quantized according to `quant_config`."""

    def __init__(self, quant_config: QuantizationConfig | None = None) -> None:
        self._quant_config = quant_config

    def build_qkv(self, hidden: int, heads: int, head_dim: int, prefix: str) -> nn.Module:
        """Build a projection to the queries, keys and values of this rank's heads, concatenated."""
        return QKVParallelLinear(
            hidden, head_dim, heads, quant_config=self._quant_config, prefix=prefix
        )

    def build_column(self, size: int, out: int, prefix: str) -> nn.Module:
        """Build a layer whose outputs are split over the ranks."""
        return ColumnParallelLinear(size, out, quant_config=self._quant_config, prefix=prefix)

    def build_row(self, size: int, out: int, prefix: str) -> nn.Module:
        """Build a layer whose inputs are split over the ranks; each rank gets all outputs."""
        return RowParallelLinear(size, out, quant_config=self._quant_config, prefix=prefix)
