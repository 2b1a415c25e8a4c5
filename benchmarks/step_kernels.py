"""A decode step's own kernels, each against what it stands for, on a GPU.

    python -m benchmarks.step_kernels --out FILE

Every way is a CUDA graph of some layers in a row, each with weights of its own, so that none is in
the cache; times are microseconds of one layer. `SGLANG_MOE_CONFIG_DIR` says which tiles SGLang
takes for the experts, as in the server.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks import replays
from benchmarks.environment import fingerprint
from benchmarks.tune_few_rows import HIDDEN, MATRICES, draw
from benchmarks.tune_moe import EXPERTS, Case, draw_experts
from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.thinker.decode_moe import StepExperts
from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import TILE_ROWS
from sglang_omni.models.ming.thinker.decode_moe_triton import (
    apply_swiglu,
    group_by_expert,
    sum_experts,
)
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.router_triton import route_rows
from sglang_omni.models.ming.thinker.routing import ROUTERS, Routing
from sglang_omni.models.ming.thinker.routing_triton import select_experts_fused
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import (
    WORKSPACE_SIZE,
    small_batch_linear,
)

ROWS = (1, 8, 16, 32, 64)
LAYERS, REPLAYS = 12, 5
ROUTING = Routing(experts=EXPERTS - 1, groups=8, top_groups=4, top_k=8, scale=2.5)
SLOTS, WIDTH = ROUTING.top_k + 1, 1024

Way = Callable[[int], object]


@dataclass(frozen=True)
class Pair:
    """What SGLang does for one layer, and what we do."""

    name: str
    theirs: Way
    ours: Way


def microseconds(way: Way) -> float:
    """Time of one layer, of `LAYERS` in a graph."""
    way(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for layer in range(LAYERS):
            way(layer)
    return 1e3 * replays.milliseconds(graph, REPLAYS) / LAYERS


def normal(*shape: int) -> Tensor:
    """Random numbers in bfloat16."""
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def products(rows: int) -> list[Pair]:
    """Each product of attention."""
    from sglang.srt.layers.quantization.fp8_utils import (
        cutlass_w8a8_block_fp8_linear_with_fallback as library,
    )

    x = normal(rows, HIDDEN)
    space = Workspace(WORKSPACE_SIZE, torch.device("cuda"))

    def pair(name: str, weights: Sequence[tuple[Tensor, Tensor]]) -> Pair:
        def theirs(layer: int) -> None:
            weight, scale = weights[layer]
            library(x, weight, [BLOCK, BLOCK], scale)

        return Pair(name, theirs, lambda layer: small_batch_linear(x, *weights[layer], space))

    return [pair(name, draw(*shape, LAYERS)) for name, shape in MATRICES.items()]


def around(rows: int) -> list[Pair]:
    """What stands around the experts' products."""
    from sgl_kernel import moe_sum_reduce
    from sglang.jit_kernel.activation import silu_and_mul
    from sglang.srt.layers.moe.moe_runner.triton_utils import moe_align_block_size
    from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import moe_sum_reduce_torch_compile
    from sglang.srt.layers.quantization.fp8_kernel import sglang_per_token_group_quant_fp8

    x = normal(rows, HIDDEN)
    weights = normal(LAYERS, ROUTING.experts, HIDDEN) * HIDDEN**-0.5
    bias = torch.zeros(1, ROUTING.experts, device="cuda")
    gate_up, activated = normal(rows * SLOTS, 2 * WIDTH), normal(rows * SLOTS, WIDTH)
    parts, out = normal(rows, SLOTS, HIDDEN), normal(rows, HIDDEN)
    total = torch.zeros(1, dtype=torch.int32, device="cuda")
    ids = select_experts_fused(F.linear(x, weights[0]), bias, ROUTING)[1]

    def their_router(layer: int) -> None:
        select_experts_fused(F.linear(x, weights[layer]), bias, ROUTING)
        sglang_per_token_group_quant_fp8(x, BLOCK)

    def our_order(layer: int) -> None:
        total.zero_()
        group_by_expert(ids, EXPERTS, TILE_ROWS, total, pdl=True)

    def zeroed_order(layer: int) -> None:
        total.zero_()
        moe_align_block_size(ids, TILE_ROWS, EXPERTS)

    def their_activation(layer: int) -> None:
        silu_and_mul(gate_up, activated)
        sglang_per_token_group_quant_fp8(activated, BLOCK)

    def their_sum(layer: int) -> None:
        if rows <= 32:
            moe_sum_reduce_torch_compile(parts, out, 1.0)
        else:
            moe_sum_reduce(parts, out, 1.0)

    return [
        Pair(
            "router, routing, rows in eight bits",
            their_router,
            lambda layer: route_rows(x, weights[layer], bias[0], ROUTING, pdl=True),
        ),
        Pair("a fill and the order", zeroed_order, our_order),
        Pair("SwiGLU in eight bits", their_activation, lambda _: apply_swiglu(gate_up, pdl=True)),
        Pair("sum of experts", their_sum, lambda _: sum_experts(parts, pdl=True)),
    ]


class Layers:
    """Experts of one layer at the released shape, whose weights every layer of a graph shares: each
    routes its own rows, and so meets other experts."""

    def __init__(self) -> None:
        made = draw_experts(Case(tp=1, fp8=True), torch.device("cuda"))
        layer = SimpleNamespace(
            w13_weight=made.up,
            w13_weight_scale_inv=made.up_scale,
            w2_weight=made.down,
            w2_weight_scale_inv=made.down_scale,
        )
        shape = len(ROUTERS), ROUTING.experts
        self._router = SimpleNamespace(
            weight=normal(*shape, HIDDEN) * HIDDEN**-0.5,
            expert_bias=torch.zeros(*shape, device="cuda"),
            routing=ROUTING,
        )
        self._layer, self.step = layer, StepExperts(self._router, layer)

    def pairs(self, rows: int) -> list[Pair]:
        """A whole layer's experts."""
        from sglang.srt.layers.moe.moe_runner import MoeRunnerConfig
        from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import fused_experts

        xs = [normal(rows, HIDDEN) for _ in range(LAYERS)]
        router, layer = self._router, self._layer
        config = MoeRunnerConfig(num_experts=EXPERTS, num_local_experts=EXPERTS, inplace=False)

        def theirs(index: int) -> Tensor:
            logits = F.linear(xs[index], router.weight[0])
            chosen = (*select_experts_fused(logits, router.expert_bias, ROUTING), logits)
            return fused_experts(
                xs[index],
                layer.w13_weight,
                layer.w2_weight,
                chosen,
                config,
                use_fp8_w8a8=True,
                w1_scale=layer.w13_weight_scale_inv,
                w2_scale=layer.w2_weight_scale_inv,
                block_shape=[BLOCK, BLOCK],
            )

        ours, plain = self.step(xs[0]).float(), theirs(0).float()
        apart = float((ours - plain).norm() / plain.norm())
        return [Pair(f"experts ({apart:.4f} apart)", theirs, lambda index: self.step(xs[index]))]


def arguments_of_sglang() -> Any:
    """What SGLang's functions read of its server's arguments, while the result is entered."""
    from sglang.srt.runtime_context import get_context

    made = SimpleNamespace(
        enable_deterministic_inference=False, enable_fused_moe_sum_all_reduce=False
    )
    return patch.object(get_context(), "_server_args", made)


SECTIONS: dict[str, Callable[[], Callable[[int], list[Pair]]]] = {
    "products": lambda: products,
    "around": lambda: around,
    "experts": lambda: Layers().pairs,
}
Found = dict[str, dict[str, tuple[float, float]]]


def measure(section: str) -> Found:
    """SGLang's microseconds and ours by name and number of rows."""
    found: Found = {}
    with arguments_of_sglang():
        pairs = SECTIONS[section]()
        for rows in ROWS:
            for pair in pairs(rows):
                took = microseconds(pair.theirs), microseconds(pair.ours)
                found.setdefault(pair.name.split(" (")[0], {})[str(rows)] = took
                print(f"{rows:3d} rows: {took[0]:7.1f} {took[1]:7.1f}  {pair.name}", flush=True)
    return found


def main() -> None:
    """Time everything, print a table, write all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: Found = {}
    for section in options.sections:
        found |= measure(section)
    print(table(found))
    if options.out:
        result = {"environment": fingerprint(), "microseconds": found}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def table(found: Found) -> str:
    """SGLang's microseconds and ours, a line for each pair."""
    lines = [f"{'SGLang / ours at rows':40s}" + "".join(f"{rows:>16d}" for rows in ROWS)]
    for name, times in found.items():
        cells = (f"{a:.1f} / {b:.1f}" for a, b in times.values())
        lines.append(f"{name:40s}" + "".join(f"{cell:>16s}" for cell in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
