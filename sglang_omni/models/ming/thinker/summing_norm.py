"""SGLang's norm, which also takes what a decode step's experts gave before it is summed."""

from typing import Any

from sglang.srt.layers.layernorm import RMSNorm
from torch import Tensor

from sglang_omni.models.ming.thinker.norm_triton import sum_norm


class SummingNorm(RMSNorm):
    """RMSNorm of x + residual, where x [tokens, hidden] may still be the parts [tokens, experts,
    hidden] of a sum."""

    def forward_cuda(
        self,
        x: Tensor,
        residual: Tensor | None = None,
        post_residual_addition: Tensor | None = None,
    ) -> Any:
        """As SGLang's: x normalised, or x + residual normalised and that sum."""
        if x.dim() < 3 or residual is None:
            return super().forward_cuda(x, residual, post_residual_addition)
        assert post_residual_addition is None
        return sum_norm(x, residual, self.weight, self.variance_epsilon, chained=True)
