"""Linear layers of the vision encoder, made by PyTorch or by SGLang.

SGLang's layers split the work over tensor-parallel ranks and support quantization. On one rank,
without a GPU and without quantization, they are PyTorch's own, but cost ten seconds of imports.
"""

from typing import Protocol

from torch import Tensor, nn


class Linears(Protocol):
    """Factory of layers that return (product, None); `prefix` is the name in the checkpoint."""

    def build_qkv(self, hidden: int, heads: int, head_dim: int, prefix: str) -> nn.Module:
        """Build a projection to the queries, keys and values of this rank's heads, concatenated."""

    def build_column(self, size: int, out: int, prefix: str) -> nn.Module:
        """Build a layer whose outputs are split over the ranks."""

    def build_row(self, size: int, out: int, prefix: str) -> nn.Module:
        """Build a layer whose inputs are split over the ranks; each rank gets all outputs."""


class PlainLinear(nn.Linear):
    """PyTorch's layer with the return value of SGLang's layers."""

    def forward(self, x: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        """Return the product, and None where SGLang's layers return a bias."""
        return super().forward(x), None


class PlainLinears:
    """Layers of one rank, without SGLang."""

    def build_qkv(self, hidden: int, heads: int, head_dim: int, prefix: str) -> nn.Module:
        """Build a projection to the queries, keys and values of all heads, concatenated."""
        return PlainLinear(hidden, 3 * heads * head_dim)

    def build_column(self, size: int, out: int, prefix: str) -> nn.Module:
        """Build an unsplit layer."""
        return PlainLinear(size, out)

    build_row = build_column
