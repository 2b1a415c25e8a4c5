"""SGLang's RMS norm, which for small batches also sums the outputs of the experts."""

from typing import Any

from sglang.srt.layers.layernorm import RMSNorm
from torch import Tensor

from sglang_omni.models.ming.thinker.decode_moe import supports_decode_kernels
from sglang_omni.models.ming.thinker.norm_triton import sum_norm
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import MAX_ROWS


class StepNorm(RMSNorm):
    """RMSNorm of x + residual.

    For small batches, x may be the unsummed expert outputs [tokens, experts, hidden] instead of
    [tokens, hidden], and the kernel uses programmatic dependent launch.
    """

    def __init__(self, hidden_size: int, eps: float) -> None:
        super().__init__(hidden_size, eps=eps)
        self.pdl = supports_decode_kernels()

    def forward_cuda(
        self,
        x: Tensor,
        residual: Tensor | None = None,
        post_residual_addition: Tensor | None = None,
    ) -> Any:
        """Normalise as SGLang does: return norm(x), or norm(x + residual) and that sum."""
        is_small_batch = self.pdl and 0 < len(x) <= MAX_ROWS
        if not is_small_batch or residual is None or post_residual_addition is not None:
            return super().forward_cuda(x, residual, post_residual_addition)
        parts = x if x.dim() == 3 else x[:, None]
        return sum_norm(parts, residual, self.weight, self.variance_epsilon, pdl=True)
