"""SGLang's norm, which of a decode step's few rows also takes what is not summed yet."""

from typing import Any

from sglang.srt.layers.layernorm import RMSNorm
from torch import Tensor

from sglang_omni.models.ming.thinker.decode_moe import may_differ
from sglang_omni.models.ming.thinker.norm_triton import sum_norm
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import MOST_ROWS


class StepNorm(RMSNorm):
    """RMSNorm of x + residual. Of few rows, x [tokens, hidden] may still be the parts [tokens,
    experts, hidden] of a sum, and the kernel is pdl to those around it."""

    def __init__(self, hidden_size: int, eps: float) -> None:
        super().__init__(hidden_size, eps=eps)
        self.pdl = may_differ()

    def forward_cuda(
        self,
        x: Tensor,
        residual: Tensor | None = None,
        post_residual_addition: Tensor | None = None,
    ) -> Any:
        """As SGLang's: x normalised, or x + residual normalised and that sum."""
        few = self.pdl and 0 < len(x) <= MOST_ROWS
        if not few or residual is None or post_residual_addition is not None:
            return super().forward_cuda(x, residual, post_residual_addition)
        parts = x if x.dim() == 3 else x[:, None]
        return sum_norm(parts, residual, self.weight, self.variance_epsilon, pdl=True)
