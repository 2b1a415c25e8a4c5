"""The experts of a decode step in seven kernels, beside SGLang's fourteen.

The two products are SGLang's own kernel with SGLang's choice of tiles; around them stand kernels
for few rows: router and eight bits, order, SwiGLU in eight bits, and the sum. What it computes is
what `SparseMLP` has SGLang compute, before any all-reduce.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe_triton_config import (
    try_get_optimal_moe_config,
)
from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe_triton_kernels import (
    fused_moe_kernel,
    should_enable_swap_ab,
)
from sglang.srt.layers.quantization.fp8 import Fp8MoEMethod
from sglang.srt.runtime_context import get_server_args
from sglang.srt.utils import is_sm90_supported
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.experts_triton import (
    Order,
    activate,
    group_by_expert,
    sum_experts,
)
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.router_triton import Routed, can_route_rows, route_rows
from sglang_omni.models.ming.thinker.routing import TEXT

Config = dict[str, int]


@dataclass(frozen=True)
class StepExperts:
    """One layer's routers and experts, for rows [tokens, hidden] of text in a decode step."""

    router: Any
    experts: Any

    def __call__(self, x: Tensor) -> Tensor:
        """The sum [tokens, hidden] of what each row's experts give, on this rank."""
        router, layer = self.router, self.experts
        up, down = layer.w13_weight, layer.w2_weight
        up_config, down_config = self._configs(len(x))
        weight, bias = router.weight[TEXT], router.expert_bias[TEXT]
        routed = route_rows(x, weight, bias, router.routing)
        height = up_config["BLOCK_SIZE_M"]
        # The shared expert is every token's: its weight can be asked for at once.
        order = group_by_expert(routed.ids, len(up), height, routed.places, ahead=up[-1])
        slots = routed.ids.numel()
        gate_up = torch.empty(slots, up.shape[1], dtype=x.dtype, device=x.device)
        _multiply(
            (routed.rows, routed.scales),
            (up, layer.w13_weight_scale_inv),
            gate_up,
            routed,
            order,
            up_config,
            rows_each=routed.ids.shape[1],
            weighted=False,
        )
        parts = torch.empty(*routed.ids.shape, down.shape[1], dtype=x.dtype, device=x.device)
        _multiply(
            activate(gate_up),
            (down, layer.w2_weight_scale_inv),
            parts,
            routed,
            order,
            down_config,
            rows_each=1,
            weighted=True,
        )
        return sum_experts(parts)

    def _configs(self, tokens: int) -> tuple[Config, Config]:
        """SGLang's tiles of both products."""
        layer = self.experts
        up, (down, _) = try_get_optimal_moe_config(
            layer.w13_weight.shape,
            layer.w2_weight.shape,
            self.router.routing.top_k + 1,
            "fp8_w8a8",
            tokens,
            block_shape=[BLOCK, BLOCK],
            return_down_config=True,
        )
        # Without rows sorted for it there is nothing that descriptors could read.
        down = {name: value for name, value in (down or up).items() if name != "USE_TMA"}
        return up, down


def may_differ() -> bool:
    """Whether kernels of a decode step may be others than a prompt's: on Hopper cards, where they
    were measured, unless answers must not depend on who else is in the batch."""
    return is_sm90_supported() and not get_server_args().enable_deterministic_inference


def step_experts(router: nn.Module, experts: nn.Module) -> StepExperts | None:
    """This way for a layer's routers and experts; None where SGLang's is to be kept.

    It is for experts in blocks of eight bits that SGLang multiplies by Triton.
    """
    method: Any = getattr(experts, "quant_method", None)
    if not may_differ():
        return None
    if not isinstance(method, Fp8MoEMethod) or not method.block_quant or method.use_mxfp8:
        return None
    way = StepExperts(router, experts)
    sizes = way.router.weight[TEXT].shape
    return way if method.runner.runner_backend.is_triton() and can_route_rows(*sizes) else None


def _multiply(
    rows: tuple[Tensor, Tensor],
    weight: tuple[Tensor, Tensor],
    out: Tensor,
    routed: Routed,
    order: Order,
    config: Config,
    rows_each: int,
    weighted: bool,
) -> None:
    """Rows in eight bits and their scales times the weights of their experts [experts, N, K] and
    their scales, as SGLang's `invoke_fused_moe_kernel`, which would quantise rows by itself.

    Row r / `rows_each` of `rows` goes to slot r of `out`, times its expert's share if `weighted`.
    """
    (x, x_scale), (w, w_scale) = rows, weight
    m, n = config["BLOCK_SIZE_M"], config["BLOCK_SIZE_N"]
    tiles = len(order.experts) * triton.cdiv(w.shape[1], n)
    fused_moe_kernel[(tiles,)](
        a_ptr=x,
        a_desc=None,
        b_ptr=w,
        b_desc=None,
        bias_ptr=None,
        c_ptr=out,
        a_scale_ptr=x_scale,
        b_scale_ptr=w_scale,
        topk_weights_ptr=routed.weights,
        sorted_token_ids_ptr=order.slots,
        expert_ids_ptr=order.experts,
        num_tokens_post_padded_ptr=order.total,
        add_mask_ptr=None,
        N=w.shape[1],
        K=w.shape[2],
        EM=len(order.slots),
        num_valid_tokens=routed.ids.numel(),
        stride_am=x.stride(0),
        stride_ak=x.stride(1),
        stride_be=w.stride(0),
        stride_bk=w.stride(2),
        stride_bn=w.stride(1),
        stride_bias_e=0,
        stride_bias_n=0,
        stride_cm=out.stride(-2),
        stride_cn=out.stride(-1),
        stride_asm=x_scale.stride(0),
        stride_ask=x_scale.stride(1),
        stride_bse=w_scale.stride(0),
        stride_bsk=w_scale.stride(2),
        stride_bsn=w_scale.stride(1),
        group_n=BLOCK,
        group_k=BLOCK,
        MUL_ROUTED_WEIGHT=weighted,
        top_k=rows_each,
        compute_type=tl.bfloat16 if out.dtype == torch.bfloat16 else tl.float16,
        use_fp8_w8a8=True,
        use_int8_w8a8=False,
        use_int8_w8a16=False,
        per_channel_quant=False,
        even_Ks=w.shape[2] % config["BLOCK_SIZE_K"] == 0,
        c_sorted=False,
        filter_expert=False,
        swap_ab=should_enable_swap_ab(m, n),
        FUSE_ADD_TO_OUTPUT=False,
        MASK_OUTPUT=False,
        FUSE_SUM_ALL_REDUCE=False,
        LORA_PRESERVE_BASE=False,
        ROUTER_TOPK=1,
        **config,
    )
