"""The experts of a decode step in seven kernels, beside SGLang's fourteen.

Two products for few rows and, around them, router and eight bits, order, SwiGLU in eight bits, and
the sum, which the norm after them takes over where there is one rank. What they compute is what
`SparseMLP` has SGLang compute, before any all-reduce.
"""

from dataclasses import dataclass
from typing import Any

from sglang.srt.layers.quantization.fp8 import Fp8MoEMethod
from sglang.srt.runtime_context import get_server_args
from sglang.srt.utils import is_sm90_supported
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import (
    HEIGHT,
    MoeGemmTile,
    can_multiply,
    expert_product,
)
from sglang_omni.models.ming.thinker.decode_moe_triton import (
    activate,
    group_by_expert,
    sum_experts,
)
from sglang_omni.models.ming.thinker.router_triton import can_route_rows, route_rows
from sglang_omni.models.ming.thinker.routing import TEXT


@dataclass(frozen=True)
class MoeTiling:
    """How a layer's products are cut."""

    up: MoeGemmTile
    down: MoeGemmTile


# By the rows of a step, or the next more: found by `benchmarks.thinker.tune_decode_moe` on an H200.
CUTS = {
    1: MoeTiling(MoeGemmTile(64, 4, 6), MoeGemmTile(128, 4, 3)),
    8: MoeTiling(MoeGemmTile(64, 4, 6), MoeGemmTile(64, 4, 6)),
    16: MoeTiling(MoeGemmTile(64, 4, 5), MoeGemmTile(64, 4, 3)),
    32: MoeTiling(MoeGemmTile(64, 4, 5), MoeGemmTile(128, 4, 4)),
    64: MoeTiling(MoeGemmTile(64, 4, 5), MoeGemmTile(64, 4, 5)),
}


def cut_for(rows: int) -> MoeTiling:
    """How the products of so many rows are cut."""
    return CUTS[min(most for most in CUTS if rows <= most)]


@dataclass(frozen=True)
class StepExperts:
    """One layer's routers and experts, for rows [tokens, hidden] of text in a decode step."""

    router: Any
    experts: Any

    def __call__(self, x: Tensor) -> Tensor:
        """The sum [tokens, hidden] of what each row's experts give, on this rank."""
        return sum_experts(self.parts(x), pdl=True)

    def parts(self, x: Tensor, cut: MoeTiling | None = None) -> Tensor:
        """What each row's experts give, before it is summed: [tokens, experts, hidden]."""
        router, layer = self.router, self.experts
        cut = cut or cut_for(len(x))
        up, up_scale = layer.w13_weight, layer.w13_weight_scale_inv
        down, down_scale = layer.w2_weight, layer.w2_weight_scale_inv
        weight, bias = router.weight[TEXT], router.expert_bias[TEXT]
        routed = route_rows(x, weight, bias, router.routing, pdl=True)
        # The shared expert is every token's: its weight can be asked for at once.
        order = group_by_expert(routed.ids, len(up), HEIGHT, routed.places, ahead=up[-1], pdl=True)
        gate_up = x.new_empty(routed.ids.numel(), up.shape[1])
        rows = routed.rows, routed.scales
        expert_product(rows, (up, up_scale), order, gate_up, cut.up, pdl=True)
        rows = activate(gate_up, pdl=True)
        parts = x.new_empty(*routed.ids.shape, down.shape[1])
        expert_product(
            rows,
            (down, down_scale),
            order,
            parts.flatten(0, 1),
            cut.down,
            routed.weights,
            pdl=True,
        )
        return parts


def may_differ() -> bool:
    """Whether kernels of a decode step may be others than a prompt's: on Hopper cards, where they
    were measured, unless answers must not depend on who else is in the batch."""
    return is_sm90_supported() and not get_server_args().enable_deterministic_inference


def decode_moe(router: nn.Module, experts: nn.Module) -> StepExperts | None:
    """This way for a layer's routers and experts; None where SGLang's is to be kept.

    It is for experts in blocks of eight bits that SGLang multiplies by Triton.
    """
    method: Any = getattr(experts, "quant_method", None)
    if not may_differ():
        return None
    if not isinstance(method, Fp8MoEMethod) or not method.block_quant or method.use_mxfp8:
        return None
    way = StepExperts(router, experts)
    fits = can_route_rows(*way.router.weight[TEXT].shape)
    fits = fits and can_multiply(way.experts.w2_weight.shape)
    return way if method.runner.runner_backend.is_triton() and fits else None
