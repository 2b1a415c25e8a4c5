"""Compare the kernels of a decode step with SGLang's, on a GPU.

    python -m benchmarks.thinker.decode_kernels --out FILE

Each side is a CUDA graph of consecutive layers, each with its own weights, so that none is in the
cache. Times are microseconds per layer. `SGLANG_MOE_CONFIG_DIR` selects the tiles of SGLang's
experts, as in the server.
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

from benchmarks.thinker.tune_moe import EXPERTS, Case, random_experts
from benchmarks.thinker.tune_small_batch_gemm import (
    HEAD_COUNT,
    HEAD_SHAPE,
    HIDDEN,
    MATRICES,
    random_fp8_weights,
)
from benchmarks.tools import cuda_graphs
from measurement.environment import fingerprint
from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.thinker.decode_moe import DecodeExperts
from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import TILE_ROWS
from sglang_omni.models.ming.thinker.decode_moe_triton import (
    Grouping,
    allocate_order,
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

LayerCall = Callable[[int], object]


@dataclass(frozen=True)
class KernelComparison:
    """The kernels of one layer: SGLang's and ours. Both are called with the number of the layer."""

    name: str
    sglang: LayerCall
    ours: LayerCall


def time_layer_us(run_layer: LayerCall) -> float:
    """Return the microseconds of one layer, from a CUDA graph of `LAYERS` layers."""
    run_layer(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for layer in range(LAYERS):
            run_layer(layer)
    return 1e3 * cuda_graphs.mean_replay_ms(graph, REPLAYS) / LAYERS


def random_bf16(*shape: int) -> Tensor:
    """Return random numbers in bfloat16 on the GPU."""
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def compare_attention_gemms(rows: int) -> list[KernelComparison]:
    """Compare each GEMM of attention, at this number of rows."""
    from sglang.srt.layers.quantization.fp8_utils import (
        cutlass_w8a8_block_fp8_linear_with_fallback as sglang_linear,
    )

    x = random_bf16(rows, HIDDEN)
    space = Workspace(WORKSPACE_SIZE, torch.device("cuda"))

    def compare(name: str, weights: Sequence[tuple[Tensor, Tensor]]) -> KernelComparison:
        def run_sglang(layer: int) -> None:
            weight, scale = weights[layer]
            sglang_linear(x, weight, [BLOCK, BLOCK], scale)

        return KernelComparison(
            name, run_sglang, lambda layer: small_batch_linear(x, *weights[layer], space)
        )

    return [compare(name, random_fp8_weights(*shape, LAYERS)) for name, shape in MATRICES.items()]


class Heads:
    """Output heads at the released shape: two, of which neither stays in the cache."""

    def __init__(self) -> None:
        self._weights = random_fp8_weights(*HEAD_SHAPE, HEAD_COUNT)
        self._plain = [random_bf16(*HEAD_SHAPE) for _ in range(HEAD_COUNT)]
        self._space = Workspace(WORKSPACE_SIZE, torch.device("cuda"))

    def pairs(self, rows: int) -> list[KernelComparison]:
        """Compare the head in bfloat16, whose logits are then copied, with ours in FP8."""
        x = random_bf16(rows, HIDDEN)
        logits = torch.empty(rows, HEAD_SHAPE[0], device="cuda")

        def run_sglang(layer: int) -> None:
            logits.copy_(torch.matmul(x, self._plain[layer % HEAD_COUNT].T))

        def run_ours(layer: int) -> None:
            weight = self._weights[layer % HEAD_COUNT]
            small_batch_linear(x, *weight, self._space, pdl=True, out=logits)

        return [KernelComparison("head", run_sglang, run_ours)]


def compare_moe_kernels(rows: int) -> list[KernelComparison]:
    """Compare the kernels around the expert GEMMs, at this number of rows."""
    from sgl_kernel import moe_sum_reduce
    from sglang.jit_kernel.activation import silu_and_mul
    from sglang.srt.layers.moe.moe_runner.triton_utils import moe_align_block_size
    from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import moe_sum_reduce_torch_compile
    from sglang.srt.layers.quantization.fp8_kernel import sglang_per_token_group_quant_fp8

    x = random_bf16(rows, HIDDEN)
    weights = random_bf16(LAYERS, ROUTING.experts, HIDDEN) * HIDDEN**-0.5
    bias = torch.zeros(1, ROUTING.experts, device="cuda")
    gate_up, activated = random_bf16(rows * SLOTS, 2 * WIDTH), random_bf16(rows * SLOTS, WIDTH)
    parts, out = random_bf16(rows, SLOTS, HIDDEN), random_bf16(rows, HIDDEN)
    grouping = Grouping(EXPERTS, TILE_ROWS)
    ids = select_experts_fused(F.linear(x, weights[0]), bias, ROUTING)[1]
    order = allocate_order(ids.numel(), grouping, ids.device)

    def sglang_router(layer: int) -> None:
        select_experts_fused(F.linear(x, weights[layer]), bias, ROUTING)
        sglang_per_token_group_quant_fp8(x, BLOCK)
        moe_align_block_size(ids, TILE_ROWS, EXPERTS)

    def sort_by_expert(layer: int) -> None:
        order.total.zero_()
        group_by_expert(ids, grouping, order, pdl=True)

    def sglang_sort(layer: int) -> None:
        order.total.zero_()
        moe_align_block_size(ids, TILE_ROWS, EXPERTS)

    def sglang_activation(layer: int) -> None:
        silu_and_mul(gate_up, activated)
        sglang_per_token_group_quant_fp8(activated, BLOCK)

    def sglang_sum(layer: int) -> None:
        if rows <= 32:
            moe_sum_reduce_torch_compile(parts, out, 1.0)
        else:
            moe_sum_reduce(parts, out, 1.0)

    return [
        KernelComparison(
            "router, routing, order, rows in FP8",
            sglang_router,
            lambda layer: route_rows(x, weights[layer], bias[0], ROUTING, grouping, pdl=True),
        ),
        KernelComparison("fill and sort by expert", sglang_sort, sort_by_expert),
        KernelComparison(
            "SwiGLU in FP8", sglang_activation, lambda _: apply_swiglu(gate_up, pdl=True)
        ),
        KernelComparison("sum of experts", sglang_sum, lambda _: sum_experts(parts, pdl=True)),
    ]


class ExpertLayers:
    """The experts of one layer at the released shape.

    All layers of a graph share the weights. Each layer routes its own rows, and so uses other
    experts.
    """

    def __init__(self) -> None:
        weights = random_experts(Case(tp=1, fp8=True), torch.device("cuda"))
        layer = SimpleNamespace(
            w13_weight=weights.up,
            w13_weight_scale_inv=weights.up_scale,
            w2_weight=weights.down,
            w2_weight_scale_inv=weights.down_scale,
        )
        shape = len(ROUTERS), ROUTING.experts
        self._router = SimpleNamespace(
            weight=random_bf16(*shape, HIDDEN) * HIDDEN**-0.5,
            expert_bias=torch.zeros(*shape, device="cuda"),
            routing=ROUTING,
        )
        self._layer, self.step = layer, DecodeExperts(self._router, layer)

    def pairs(self, rows: int) -> list[KernelComparison]:
        """Compare all kernels of a layer's experts, at this number of rows."""
        from sglang.srt.layers.moe.moe_runner import MoeRunnerConfig
        from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import fused_experts

        xs = [random_bf16(rows, HIDDEN) for _ in range(LAYERS)]
        router, layer = self._router, self._layer
        config = MoeRunnerConfig(num_experts=EXPERTS, num_local_experts=EXPERTS, inplace=False)

        def run_sglang(index: int) -> Tensor:
            logits = F.linear(xs[index], router.weight[0])
            topk_output = (*select_experts_fused(logits, router.expert_bias, ROUTING), logits)
            return fused_experts(
                xs[index],
                layer.w13_weight,
                layer.w2_weight,
                topk_output,
                config,
                use_fp8_w8a8=True,
                w1_scale=layer.w13_weight_scale_inv,
                w2_scale=layer.w2_weight_scale_inv,
                block_shape=[BLOCK, BLOCK],
            )

        ours, plain = self.step(xs[0]).float(), run_sglang(0).float()
        relative_error = float((ours - plain).norm() / plain.norm())
        return [
            KernelComparison(
                f"experts ({relative_error:.4f} apart)",
                run_sglang,
                lambda index: self.step(xs[index]),
            )
        ]


def stub_server_args() -> Any:
    """Return a context in which SGLang's functions find the server arguments that they read."""
    from sglang.srt.runtime_context import get_context

    server_args = SimpleNamespace(
        enable_deterministic_inference=False, enable_fused_moe_sum_all_reduce=False
    )
    return patch.object(get_context(), "_server_args", server_args)


SECTIONS: dict[str, Callable[[], Callable[[int], list[KernelComparison]]]] = {
    "products": lambda: compare_attention_gemms,
    "around": lambda: compare_moe_kernels,
    "experts": lambda: ExpertLayers().pairs,
    "head": lambda: Heads().pairs,
}
LayerTimes = dict[str, dict[str, tuple[float, float]]]


def measure_section(section: str) -> LayerTimes:
    """Return the microseconds of SGLang and ours, by name and number of rows."""
    times: LayerTimes = {}
    with stub_server_args():
        pairs = SECTIONS[section]()
        for rows in ROWS:
            for pair in pairs(rows):
                layer_us = time_layer_us(pair.sglang), time_layer_us(pair.ours)
                times.setdefault(pair.name.split(" (")[0], {})[str(rows)] = layer_us
                print(
                    f"{rows:3d} rows: {layer_us[0]:7.1f} {layer_us[1]:7.1f}  {pair.name}",
                    flush=True,
                )
    return times


def main() -> None:
    """Time every section, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    times: LayerTimes = {}
    for section in options.sections:
        times |= measure_section(section)
    print(format_table(times))
    if options.out:
        result = {"environment": fingerprint(), "microseconds": times}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def format_table(times: LayerTimes) -> str:
    """Format a table: SGLang's microseconds and ours, one line for each comparison."""
    lines = [f"{'SGLang / ours at rows':40s}" + "".join(f"{rows:>16d}" for rows in ROWS)]
    for name, cells_by_rows in times.items():
        cells = (f"{a:.1f} / {b:.1f}" for a, b in cells_by_rows.values())
        lines.append(f"{name:40s}" + "".join(f"{cell:>16s}" for cell in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
