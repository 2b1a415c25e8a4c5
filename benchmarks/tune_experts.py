"""Find how the products of a decode step's experts are best cut, on a GPU.

    python -m benchmarks.tune_experts --compile 8       # all candidates, in so many processes
    python -m benchmarks.tune_experts --out FILE

Timed is all that a layer does for its experts, from the router to the sum, as CUDA graphs of layers
in a row that each meet other experts. First the product up is cut, then the product down, then it
is found of how many tiles the weight down is worth asking for. The best are printed as lines of
`TILINGS` in `sglang_omni/models/ming/thinker/decode_moe.py`.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import multiprocessing
from triton.runtime.errors import OutOfResources

from benchmarks.environment import fingerprint
from benchmarks.step_kernels import HIDDEN, LAYERS, Layers, microseconds, normal
from sglang_omni.models.ming.thinker.decode_moe import TILINGS, MoeTiling, select_tiling
from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import MoeGemmTile

TILES = [
    *(MoeGemmTile(32, 4, stages) for stages in (4, 6)),
    *(MoeGemmTile(64, 4, stages) for stages in (3, 4, 5, 6)),
    *(MoeGemmTile(128, 4, stages) for stages in (3, 4)),
    *(MoeGemmTile(128, 8, stages) for stages in (3, 4, 5)),
]
# Triton compiles anew for one row, and for counts that 16 divides.
COMPILED_ROWS = (1, 8, 16)

Times = dict[MoeTiling, float]


def compile_some(which: int, processes: int) -> None:
    """Every so-manieth candidate is run once, and so is compiled and kept."""
    layers = Layers()
    base = select_tiling(1)
    cuts = [replace(base, up=tile, down=tile) for tile in TILES]
    for cut in cuts[which::processes]:
        for rows in COMPILED_ROWS:
            try_once(layers, cut, rows)


def try_once(layers: Layers, cut: MoeTiling, rows: int) -> bool:
    """Whether it fits the card."""
    try:
        layers.step.compute_parts(normal(rows, HIDDEN), cut)
    except OutOfResources:
        return False
    return True


def time_all(layers: Layers, rows: int, cuts: Sequence[MoeTiling], found: Times) -> MoeTiling:
    """Note the microseconds of these cuts; the best of all noted."""
    xs = [normal(rows, HIDDEN) for _ in range(LAYERS)]
    for cut in cuts:
        if cut not in found and try_once(layers, cut, rows):
            found[cut] = microseconds(
                lambda index, cut=cut: layers.step.compute_parts(xs[index], cut)
            )
    return min(found, key=found.__getitem__)


def tune(layers: Layers, rows: int) -> Times:
    """Microseconds of all that was tried with so many rows, the best first."""
    found: Times = {}
    best = time_all(layers, rows, [replace(select_tiling(rows), up=tile) for tile in TILES], found)
    time_all(layers, rows, [replace(best, down=tile) for tile in TILES], found)
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def main() -> None:
    """Time everything, print the best, write all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", type=int, help="compile all, in so many processes, and end")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.compile:
        multiprocessing.spawn(compile_some, (options.compile,), options.compile)
        return
    layers, found = Layers(), {}
    for rows in TILINGS:
        times = tune(layers, rows)
        best = next(iter(times))
        before = times[select_tiling(rows)]
        print(f"    {rows}: {best},  # {times[best]:.1f} us, as it was {before:.1f}")
        found[str(rows)] = {str(cut): took for cut, took in times.items()}
    if options.out:
        result = {"environment": fingerprint(), "microseconds": found}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
