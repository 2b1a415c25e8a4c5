"""SGLang's norm, with our kernel for a decode step's rows."""

from typing import Any

from sglang.srt.layers.layernorm import RMSNorm
from torch import Tensor

from sglang_omni.models.ming.thinker.few_rows_triton import CHAINED, MOST_ROWS
from sglang_omni.models.ming.thinker.norm_triton import add_norm
from sglang_omni.models.ming.thinker.step_experts import may_differ

OURS = True
"""Whether a decode step's norms are our kernel at all."""


class StepNorm(RMSNorm):
    """RMSNorm [.., hidden] of x + residual, from which a decode step's product starts early."""

    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__(hidden, eps=eps)
        self.ours = OURS and may_differ()

    def forward_cuda(
        self,
        x: Tensor,
        residual: Tensor | None = None,
        post_residual_addition: Tensor | None = None,
    ) -> Any:
        """As SGLang's: x normalised, or x + residual normalised and that sum."""
        few = self.ours and x.dim() == 2 and 0 < len(x) <= MOST_ROWS
        if few and residual is not None and post_residual_addition is None:
            return add_norm(x, residual, self.weight, self.variance_epsilon, chained=CHAINED)
        return super().forward_cuda(x, residual, post_residual_addition)
