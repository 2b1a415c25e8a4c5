"""Find the fastest tilings of the four-bit expert products on a GPU.

    python -m benchmarks.thinker.int4_kernels             # compile every candidate, first
    python -m benchmarks.thinker.tune_int4 --out FILE     # time them, and install the fastest

For a decode step, the time is that of everything that a layer does for its experts, from the router
to the sum; for a prefill, from grouping to the sum. Each is measured as a CUDA graph of consecutive
layers with different rows, and thus different experts, at the released shape. The up-projection is
tiled first, then the down-projection, for every height of a tile. After each number of rows the
fastest tilings are written where `sglang_omni.models.ming.thinker.int4.tilings` finds them, and
every time to FILE. The rate printed is that at which the weights of the chosen experts were read.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from triton.runtime.errors import OutOfResources

from benchmarks.thinker.decode_kernels import (
    LAYERS,
    ROUTING,
    random_bf16,
    stub_server_args,
    time_layer_us,
)
from benchmarks.thinker.int4_kernels import (
    DECODE_ROWS,
    EXPERTS,
    HIDDEN,
    PREFILL_ROWS,
    WIDTH,
    list_heights,
    list_tiles,
)
from measurement.environment import fingerprint
from sglang_omni.models.ming.thinker.decode_moe_triton import (
    ExpertOrder,
    Grouping,
    sum_experts,
)
from sglang_omni.models.ming.thinker.int4.experts import (
    ExpertChoice,
    Int4DecodeExperts,
    compute_int4_parts,
    multiply_plain,
    read_experts,
)
from sglang_omni.models.ming.thinker.int4.layout import GROUP, TILE_ROWS, WORDS
from sglang_omni.models.ming.thinker.int4.tilings import (
    DEFAULT_TILINGS,
    FOLDER,
    Int4Tiling,
    Tilings,
    dump_int4_tilings,
    format_tiling_file,
)
from sglang_omni.models.ming.thinker.router_triton import route_tokens
from sglang_omni.models.ming.thinker.routing import ROUTERS, TEXT

SCALE = 2e-3

Times = dict[Int4Tiling, float]


class Int4Layer:
    """The experts of one layer at the released shape, with random weights."""

    def __init__(self, symmetric: bool = True) -> None:
        shapes = {"w13": (2 * WIDTH, HIDDEN), "w2": (HIDDEN, WIDTH)}
        layer = SimpleNamespace()
        for name, (rows, columns) in shapes.items():
            tiled = EXPERTS, rows // TILE_ROWS, columns // GROUP, TILE_ROWS
            setattr(layer, f"{name}_packed", _draw_words(*tiled, WORDS))
            scale = torch.full(tiled, SCALE, dtype=torch.bfloat16, device="cuda")
            setattr(layer, f"{name}_scale", scale)
            if not symmetric:
                setattr(layer, f"{name}_zero", _draw_words(*tiled) & 15)
        shape = len(ROUTERS), ROUTING.experts
        self.router = SimpleNamespace(
            weight=random_bf16(*shape, HIDDEN) * HIDDEN**-0.5,
            expert_bias=torch.zeros(*shape, device="cuda"),
            routing=ROUTING,
        )
        self.experts = read_experts(layer)
        self.step = Int4DecodeExperts(self.router, layer)

    def choose(self, x: Tensor) -> ExpertChoice:
        """Return the experts of rows x [tokens, hidden]."""
        # The router's kernels take the rows of a decode step.
        parts = [
            route_tokens(
                rows,
                self.router.weight[TEXT],
                self.router.expert_bias[TEXT],
                self.router.routing,
                Grouping(EXPERTS, TILE_ROWS),
            )
            for rows in x.split(max(DECODE_ROWS))
        ]
        return ExpertChoice(
            torch.cat([part.ids for part in parts]), torch.cat([part.weights for part in parts])
        )

    def prefill(self, x: Tensor, choice: ExpertChoice, tiling: Int4Tiling) -> Tensor:
        """Return the outputs of rows of a prefill, grouped as the model groups them."""
        from sglang.srt.layers.moe.moe_runner.triton_utils import moe_align_block_size

        order = ExpertOrder(*moe_align_block_size(choice.ids, tiling.height, EXPERTS))
        return sum_experts(compute_int4_parts(x, self.experts, choice, order, tiling))

    def measure_difference(self, rows: int, tiling: Int4Tiling) -> float:
        """Return how far the kernels are from the plain form, relative to its norm."""
        x = random_bf16(rows, HIDDEN)
        choice = self.choose(x)
        plain = multiply_plain(x, self.experts, choice).float()
        if rows in DECODE_ROWS:
            found = sum_experts(self.step.compute_parts(x, tiling))
        else:
            found = self.prefill(x, choice, tiling)
        return float((found.float() - plain).norm() / plain.norm())


def _draw_words(*shape: int) -> Tensor:
    """Return random int16 words on the GPU."""
    return torch.randint(-(2**15), 2**15, shape, dtype=torch.int16, device="cuda")


class Workload:
    """Rows of consecutive layers and how a layer computes them with a tiling."""

    def __init__(self, layer: Int4Layer, rows: int) -> None:
        self._layer, self.rows = layer, rows
        self._xs = [random_bf16(rows, HIDDEN) for _ in range(LAYERS)]
        self._choices = [layer.choose(x) for x in self._xs]

    def run(self, tiling: Int4Tiling, index: int) -> object:
        """Compute layer `index`."""
        if self.rows in DECODE_ROWS:
            return sum_experts(self._layer.step.compute_parts(self._xs[index], tiling), pdl=True)
        return self._layer.prefill(self._xs[index], self._choices[index], tiling)

    def fits(self, tiling: Int4Tiling) -> bool:
        """Return whether the tiling fits the GPU's resources. Runs it once."""
        try:
            self.run(tiling, 0)
        except OutOfResources:
            return False
        return True

    def read_bytes(self) -> float:
        """Return the mean bytes of the weights of a layer's chosen experts, with their scales."""
        chosen = [len(choice.ids.unique()) for choice in self._choices]
        matrices = (self._layer.experts.up, self._layer.experts.down)
        tensors = [tensor[0] for matrix in matrices for tensor in matrix.tensors().values()]
        per_expert = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return per_expert * sum(chosen) / len(chosen)


def time_tilings(workload: Workload, tilings: Sequence[Int4Tiling], times: Times) -> Int4Tiling:
    """Add the microseconds of these tilings to `times`, and return the fastest of them."""
    for tiling in tilings:
        if tiling not in times and workload.fits(tiling):
            times[tiling] = time_layer_us(partial(workload.run, tiling))
    return min((tiling for tiling in tilings if tiling in times), key=times.__getitem__)


def tune(workload: Workload) -> Times:
    """Return the microseconds of every tiling tried for a workload, the fastest first."""
    times: Times = {}
    for height in list_heights(workload.rows):
        tiles = list_tiles(workload.rows, height)
        best = time_tilings(workload, [Int4Tiling(height, up, tiles[0]) for up in tiles], times)
        time_tilings(workload, [replace(best, down=down) for down in tiles], times)
    return dict(sorted(times.items(), key=lambda pair: pair[1]))


def install_tilings(measured: Tilings, gpu_name: str, folder: Path = FOLDER) -> Path:
    """Write tilings where the server finds them, with the defaults for other numbers of rows."""
    folder.mkdir(exist_ok=True)
    path = folder / format_tiling_file(gpu_name)
    tilings = {**DEFAULT_TILINGS, **measured}
    path.write_text(dump_int4_tilings(dict(sorted(tilings.items()))), encoding="utf-8")
    return path


def main() -> None:
    """Time every tiling, and print, install and write the fastest after each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    all_rows = [*DECODE_ROWS, *PREFILL_ROWS]
    parser.add_argument("--rows", type=int, nargs="+", choices=all_rows, default=all_rows)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    layer, tilings = Int4Layer(), {}
    result: dict[str, Any] = {"environment": fingerprint(), "command": sys.argv[1:], "rows": {}}
    for rows in options.rows:
        workload = Workload(layer, rows)
        times = tune(workload)
        tilings[rows], layer_us = next(iter(times.items()))
        rate = workload.read_bytes() / layer_us / 1e3
        difference = layer.measure_difference(rows, tilings[rows])
        print(
            f"{rows:5d} rows: {layer_us:8.1f} us, weights {rate:6.0f} GB/s, "
            f"{difference:.4f} from the plain form, {tilings[rows]}",
            flush=True,
        )
        result["rows"][str(rows)] = {
            "difference": difference,
            "weights_gb_s": rate,
            "microseconds": {str(tiling): tiling_us for tiling, tiling_us in times.items()},
        }
        path = install_tilings(tilings, torch.cuda.get_device_name())
        if options.out:
            options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    with torch.inference_mode(), stub_server_args():
        main()
