"""The experts of a decode step in seven kernels, six for one row; SGLang needs fourteen.

Two expert products for small batches and, around them, the router with FP8 quantization, grouping
by expert, SwiGLU with FP8 quantization, and the sum. On one rank, the norm after them computes
the sum. The result is that of `ThinkerSparseMLP` with SGLang's kernels, before any all-reduce.
"""

from dataclasses import dataclass
from typing import Any

from sglang.srt.layers.quantization.fp8 import Fp8MoEMethod
from sglang.srt.runtime_context import get_server_args
from sglang.srt.utils import is_sm90_supported
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import (
    TILE_ROWS,
    MoeGemmTile,
    multiply_experts,
    supports_expert_sizes,
)
from sglang_omni.models.ming.thinker.decode_moe_triton import (
    Grouping,
    apply_swiglu,
    sum_experts,
)
from sglang_omni.models.ming.thinker.int4.experts import Int4DecodeExperts
from sglang_omni.models.ming.thinker.int4.method import Int4ExpertsMethod
from sglang_omni.models.ming.thinker.router_triton import route_rows, supports_router_sizes
from sglang_omni.models.ming.thinker.routing import TEXT


@dataclass(frozen=True)
class MoeTiling:
    """Tilings of the two expert products of a layer."""

    up: MoeGemmTile
    down: MoeGemmTile


# By maximum rows of a step; measured by `benchmarks.thinker.tune_decode_moe` on an H200.
TILINGS = {
    1: MoeTiling(MoeGemmTile(64, 4, 6), MoeGemmTile(128, 4, 3)),
    8: MoeTiling(MoeGemmTile(64, 4, 6), MoeGemmTile(64, 4, 6)),
    16: MoeTiling(MoeGemmTile(64, 4, 5), MoeGemmTile(64, 4, 3)),
    32: MoeTiling(MoeGemmTile(64, 4, 5), MoeGemmTile(128, 4, 4)),
    64: MoeTiling(MoeGemmTile(64, 4, 5), MoeGemmTile(64, 4, 5)),
}


def select_tiling(rows: int) -> MoeTiling:
    """Return the tiling for a number of rows."""
    return TILINGS[min(max_rows for max_rows in TILINGS if rows <= max_rows)]


@dataclass(frozen=True)
class DecodeExperts:
    """The routers and experts of one layer, for text rows [tokens, hidden] in a decode step."""

    router: Any
    experts: Any

    def __call__(self, x: Tensor) -> Tensor:
        """Return the summed expert outputs [tokens, hidden] of this rank."""
        return sum_experts(self.compute_parts(x), pdl=True)

    def compute_parts(self, x: Tensor, tiling: MoeTiling | None = None) -> Tensor:
        """Return the expert outputs before the sum, [tokens, experts, hidden]."""
        router, layer = self.router, self.experts
        tiling = tiling or select_tiling(len(x))
        up, up_scale = layer.w13_weight, layer.w13_weight_scale_inv
        down, down_scale = layer.w2_weight, layer.w2_weight_scale_inv
        weight, bias = router.weight[TEXT], router.expert_bias[TEXT]
        # Every token uses the shared expert, so its weight can be prefetched.
        grouping = Grouping(len(up), TILE_ROWS, prefetch_weight=up[-1])
        routed = route_rows(x, weight, bias, router.routing, grouping, pdl=True)
        order = routed.order
        gate_up = x.new_empty(routed.ids.numel(), up.shape[1])
        rows = routed.rows, routed.scales
        multiply_experts(rows, (up, up_scale), order, gate_up, tiling.up, pdl=True)
        rows = apply_swiglu(gate_up, pdl=True)
        parts = x.new_empty(*routed.ids.shape, down.shape[1])
        multiply_experts(
            rows,
            (down, down_scale),
            order,
            parts.flatten(0, 1),
            tiling.down,
            routed.weights,
            pdl=True,
        )
        return parts


def supports_decode_kernels() -> bool:
    """Whether decode steps may use other kernels than prefills.

    True on Hopper GPUs, where the kernels were measured, unless results must not depend on the
    other requests of a batch (deterministic inference).
    """
    return is_sm90_supported() and not get_server_args().enable_deterministic_inference


def build_decode_experts(
    router: nn.Module, experts: nn.Module
) -> DecodeExperts | Int4DecodeExperts | None:
    """Return the kernels of a layer's experts for decode steps, or None to use the layer's own.

    Requires experts in four bits, or block-FP8 experts that SGLang multiplies with Triton, and all
    of them on every rank: these kernels have no ids of local experts.
    """
    if getattr(experts, "moe_ep_size", 1) > 1:
        return None
    method: Any = getattr(experts, "quant_method", None)
    weight: Any = getattr(router, "weight", None)
    if not supports_decode_kernels() or not supports_router_sizes(*weight[TEXT].shape):
        return None
    if isinstance(method, Int4ExpertsMethod):
        return Int4DecodeExperts(router, experts)
    if not isinstance(method, Fp8MoEMethod) or not method.block_quant or method.use_mxfp8:
        return None
    down: Any = experts.w2_weight
    if not method.runner.runner_backend.is_triton() or not supports_expert_sizes(down.shape):
        return None
    return DecodeExperts(router, experts)
