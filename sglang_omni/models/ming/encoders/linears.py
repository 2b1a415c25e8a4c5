"""The linear maps of the vision encoder, by who makes them: PyTorch, or SGLang.

SGLang's split their work over tensor-parallel ranks and know quantisation. Where there is one rank
and neither card nor quantisation they come to PyTorch's own, and cost ten seconds of imports.
"""

from typing import Protocol

from torch import Tensor, nn


class Linears(Protocol):
    """Makes layers that return (product, None). `prefix` is the layer's name in the checkpoint."""

    def qkv(self, hidden: int, heads: int, head_dim: int, prefix: str) -> nn.Module:
        """Queries, keys and values of this rank's heads, side by side."""

    def column(self, size: int, out: int, prefix: str) -> nn.Module:
        """A map whose outputs are split over the ranks."""

    def row(self, size: int, out: int, prefix: str) -> nn.Module:
        """A map whose inputs are split over the ranks; its outputs are whole on every rank."""


class PlainLinear(nn.Linear):
    """PyTorch's layer with the manners of SGLang's."""

    def forward(self, x: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return super().forward(x), None


class PlainLinears:
    """One rank, without SGLang."""

    def qkv(self, hidden: int, heads: int, head_dim: int, prefix: str) -> nn.Module:
        """Queries, keys and values of all heads, side by side."""
        return PlainLinear(hidden, 3 * heads * head_dim)

    def column(self, size: int, out: int, prefix: str) -> nn.Module:
        """A whole map."""
        return PlainLinear(size, out)

    row = column
