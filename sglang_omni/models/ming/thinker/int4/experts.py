"""The experts of a layer with weights of four bits: two products with SwiGLU between them.

Decode steps on Hopper GPUs also use this project's router and grouping (`Int4DecodeExperts`), six
kernels in all, five for one row; SGLang routes and groups the rows of other batches. The plain form
runs on a CPU.
"""

import sys
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.thinker.decode_moe_triton import (
    ExpertOrder,
    Grouping,
    sum_experts,
)
from sglang_omni.models.ming.thinker.int4.gemm_triton import (
    Int4GemmTile,
    multiply_int4_experts,
)
from sglang_omni.models.ming.thinker.int4.swiglu_triton import swiglu_parts
from sglang_omni.models.ming.thinker.int4.tilings import Int4Tiling, select_gpu_tiling
from sglang_omni.models.ming.thinker.int4.weights import Int4Matrix, multiply_int4
from sglang_omni.models.ming.thinker.router_triton import route_tokens
from sglang_omni.models.ming.thinker.routing import TEXT


@dataclass(frozen=True)
class Int4Experts:
    """The stacked weights of a layer's experts, the shared one last.

    `up` has matrices [2 * width, hidden], the rows of gate before those of up; `down` has matrices
    [hidden, width].
    """

    up: Int4Matrix
    down: Int4Matrix


@dataclass(frozen=True)
class ExpertChoice:
    """The experts of each token: int32 ids and float32 weights, both [tokens, top_k]."""

    ids: Tensor
    weights: Tensor


def compute_int4_parts(
    x: Tensor,
    experts: Int4Experts,
    choice: ExpertChoice,
    order: ExpertOrder,
    tiling: Int4Tiling,
    *,
    pdl: bool = False,
) -> Tensor:
    """Return summands of the expert outputs of x [tokens, hidden]: [tokens, summands, hidden].

    `order` groups the ids of `choice` into tiles of `tiling.height` rows.
    """
    count, hidden = choice.ids.numel(), x.shape[1]
    up, down = fit_split(tiling.up, experts.up), fit_split(tiling.down, experts.down)
    gate_up_width = experts.up.packed.shape[1] * experts.up.packed.shape[3]
    # Partial sums are few, and are not rounded before they are added.
    dtype = torch.float32 if up.split > 1 else x.dtype
    gate_up = x.new_empty(count, up.split, gate_up_width, dtype=dtype)
    multiply_int4_experts(x, experts.up, order, tiling.height, gate_up, up, pdl=pdl)
    activated = swiglu_parts(gate_up, x.dtype, pdl=pdl)
    parts = x.new_empty(count, down.split, hidden)
    multiply_int4_experts(
        activated,
        experts.down,
        order,
        tiling.height,
        parts,
        down,
        choice.weights,
        pdl=pdl,
    )
    return parts.view(len(x), -1, hidden)


def fit_split(tile: Int4GemmTile, weight: Int4Matrix) -> Int4GemmTile:
    """Return a tile whose programs share the groups of a stacked weight evenly.

    Tilings are measured for the experts of one rank; those of many ranks have fewer groups.
    """
    return replace(tile, split=gcd(tile.split, weight.packed.shape[2]))


def run_int4_experts(
    x: Tensor, experts: Int4Experts, choice: ExpertChoice, *, batch_invariant: bool = False
) -> Tensor:
    """Return the summed expert outputs of x [tokens, hidden], for any number of tokens.

    With `batch_invariant`, the outputs of a token do not depend on the number of tokens.
    """
    if not x.is_cuda:
        return multiply_plain(x, experts, choice)
    from sglang.srt.layers.moe.moe_runner.triton_utils import moe_align_block_size

    if not len(x):
        return torch.empty_like(x)
    # Tilings differ in the order of the sums.
    tiling = select_gpu_tiling(x.device, sys.maxsize if batch_invariant else len(x))
    num_experts = len(experts.up.packed)
    order = ExpertOrder(*moe_align_block_size(choice.ids, tiling.height, num_experts))
    return sum_experts(compute_int4_parts(x, experts, choice, order, tiling))


def multiply_plain(x: Tensor, experts: Int4Experts, choice: ExpertChoice) -> Tensor:
    """Compute `run_int4_experts` in plain PyTorch, one expert at a time, with a float32 sum."""
    total = torch.zeros_like(x, dtype=torch.float32)
    for expert in choice.ids.unique().tolist():
        tokens, slots = (choice.ids == expert).nonzero(as_tuple=True)
        gate, up = multiply_int4(x[tokens], experts.up[expert]).float().chunk(2, dim=-1)
        activated = (F.silu(gate) * up).to(x.dtype)
        output = multiply_int4(activated, experts.down[expert]).float()
        total.index_add_(0, tokens, output * choice.weights[tokens, slots, None])
    return total.to(x.dtype)


@dataclass(frozen=True)
class Int4DecodeExperts:
    """The router and experts of one layer, for text rows [tokens, hidden] in a decode step.

    `layer` has the parameters that `read_experts` reads.
    """

    router: Any
    layer: Any

    def __call__(self, x: Tensor) -> Tensor:
        """Return the summed expert outputs [tokens, hidden] of this rank."""
        return sum_experts(self.compute_parts(x), pdl=True)

    def compute_parts(self, x: Tensor, tiling: Int4Tiling | None = None) -> Tensor:
        """Return summands of the expert outputs, [tokens, summands, hidden]."""
        router, experts = self.router, read_experts(self.layer)
        tiling = tiling or select_gpu_tiling(x.device, len(x))
        weight, bias = router.weight[TEXT], router.expert_bias[TEXT]
        # Every token uses the shared expert, so its weight can be prefetched.
        packed = experts.up.packed
        grouping = Grouping(len(packed), tiling.height, prefetch_weight=packed[-1])
        routed = route_tokens(x, weight, bias, router.routing, grouping, pdl=True)
        choice = ExpertChoice(routed.ids, routed.weights)
        return compute_int4_parts(x, experts, choice, routed.order, tiling, pdl=True)


def read_experts(layer: Any) -> Int4Experts:
    """Return the weights of a layer that has parameters `w13_*` and `w2_*` in four bits."""
    up, down = (
        Int4Matrix(
            getattr(layer, f"{prefix}_packed"),
            getattr(layer, f"{prefix}_scale"),
            getattr(layer, f"{prefix}_zero", None),
        )
        for prefix in ("w13", "w2")
    )
    return Int4Experts(up, down)
