"""Compare the router of a decode step, and the norm beside it, with their former kernels on a GPU.

    python -m benchmarks.thinker.router_kernels --out FILE

Times are microseconds of a layer, from CUDA graphs of many layers: the router alone (logits,
selection, rows in FP8, order), all of a layer's experts, and the norm that adds their outputs.
Every form must give the same bits as the former one.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.thinker.decode_kernels import LAYERS, ROUTING, SLOTS, ExpertLayers, random_bf16
from benchmarks.thinker.router_before_triton import route_before
from benchmarks.thinker.tune_moe import EXPERTS
from benchmarks.thinker.tune_small_batch_gemm import HIDDEN
from benchmarks.tools import cuda_graphs
from measurement.environment import fingerprint
from sglang_omni.kernels.registers import MAX_REGISTERS
from sglang_omni.models.ming.thinker import decode_moe, norm_triton, router_triton
from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import TILE_ROWS
from sglang_omni.models.ming.thinker.decode_moe_triton import ExpertOrder, Grouping
from sglang_omni.models.ming.thinker.router_triton import RoutedRows

ROWS = (1, 16, 64)
ROUNDS, REPLAYS = 20, 5
BIAS_STD = 0.02

Route = Callable[..., RoutedRows]


@dataclass(frozen=True)
class RouterForm:
    """One form of the router: its function, and the constants of its kernels."""

    name: str
    route: Route = router_triton.route_rows
    together: bool = True
    registers: int | None = MAX_REGISTERS

    @contextmanager
    def use(self) -> Iterator[Route]:
        """Use this form, also in the experts of a step."""
        with ExitStack() as stack:
            for module, name, value in (
                (router_triton, "TOGETHER", self.together),
                (router_triton, "MAX_REGISTERS", self.registers),
                (norm_triton, "MAX_REGISTERS", self.registers),
                (decode_moe, "route_rows", self.route),
            ):
                stack.enter_context(patch.object(module, name, value))
            yield self.route


FORMS = (
    RouterForm("before", route_before, registers=None),
    RouterForm("one by one, few registers", together=False, registers=None),
    RouterForm("one by one", together=False),
    RouterForm("together, few registers", registers=None),
    RouterForm("together"),
)
Times = dict[str, dict[str, dict[str, float]]]


def time_layer_us(run_layer: Callable[[int], object]) -> float:
    """Return the microseconds of one layer, from a CUDA graph of all layers, many times over."""
    run_layer(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for layer in range(ROUNDS * LAYERS):
            run_layer(layer % LAYERS)
    return 1e3 * cuda_graphs.mean_replay_ms(graph, REPLAYS) / (ROUNDS * LAYERS)


def list_tiles(order: ExpertOrder) -> list[tuple[int, list[int]]]:
    """Return the expert and the slots of each tile, sorted: kernels may use tiles in any order."""
    num_tiles = int(order.total) // TILE_ROWS
    slots = order.slots.view(-1, TILE_ROWS)[:num_tiles].tolist()
    return sorted(zip(order.experts[:num_tiles].tolist(), slots, strict=True))


def is_equal(found: RoutedRows, wanted: RoutedRows) -> bool:
    """Return whether all bits are the same, and the same slots are in the tiles."""
    names = ("weights", "ids", "logits", "rows", "scales")
    pairs = ((getattr(found, name), getattr(wanted, name)) for name in names)
    same_bits = all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in pairs)
    return same_bits and list_tiles(found.order) == list_tiles(wanted.order)


class Measurement:
    """The inputs of all layers, and the times so far."""

    def __init__(self) -> None:
        self.times: Times = {}
        self._step = ExpertLayers().step
        self._step.router.expert_bias.normal_(std=BIAS_STD)
        self._weights = random_bf16(LAYERS, ROUTING.experts, HIDDEN) * HIDDEN**-0.5
        biases = torch.randn(LAYERS, ROUTING.experts, device="cuda") * BIAS_STD
        # Without a bias, equal scores are common, because logits are in bfloat16.
        self._biases = {"router": biases, "router, equal scores": torch.zeros_like(biases)}
        self._ahead = torch.zeros(2048, HIDDEN, dtype=torch.uint8, device="cuda")
        self._gain = random_bf16(HIDDEN)

    def measure(self, form: RouterForm, rows: int) -> None:
        """Measure one form at one number of rows; raise ValueError if its results differ."""
        torch.manual_seed(rows)
        x, grouping = random_bf16(rows, HIDDEN), Grouping(EXPERTS, TILE_ROWS, self._ahead)
        residual = random_bf16(rows, HIDDEN)
        parts = {count: random_bf16(rows, count, HIDDEN) for count in (1, SLOTS)}
        xs = [random_bf16(rows, HIDDEN) for _ in range(LAYERS)]
        with form.use() as route:
            for what, biases in self._biases.items():

                def run(layer: int, function: Route = route, biases: Tensor = biases) -> RoutedRows:
                    weight, bias = self._weights[layer], biases[layer]
                    return function(x, weight, bias, ROUTING, grouping, pdl=True)

                for layer in range(LAYERS):
                    if not is_equal(run(layer), run(layer, route_before)):
                        raise ValueError(f"{form.name}: layer {layer} of {rows} rows differs")
                self._add(what, form, rows, time_layer_us(run))
            self._add("experts", form, rows, time_layer_us(lambda layer: self._step(xs[layer])))
            for count, some in parts.items():

                def norm(_: int, some: Tensor = some) -> Any:
                    return norm_triton.sum_norm(some, residual, self._gain, 1e-6, pdl=True)

                self._add(f"norm of {count}", form, rows, time_layer_us(norm))

    def _add(self, what: str, form: RouterForm, rows: int, layer_us: float) -> None:
        self.times.setdefault(what, {}).setdefault(form.name, {})[str(rows)] = layer_us


def format_table(times: Times) -> str:
    """Format a table: one line for each form, one column for each number of rows."""
    lines = [f"{'us at rows':40s}" + "".join(f"{rows:>8d}" for rows in ROWS)]
    for what, by_form in times.items():
        for form, by_rows in by_form.items():
            cells = "".join(f"{value:8.2f}" for value in by_rows.values())
            lines.append(f"{what + ', ' + form:40s}" + cells)
    return "\n".join(lines)


def main() -> None:
    """Measure every form, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    measurement = Measurement()
    for rows in ROWS:
        for form in FORMS:
            measurement.measure(form, rows)
    print(format_table(measurement.times))
    if options.out:
        result = {"environment": fingerprint(), "microseconds": measurement.times}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
