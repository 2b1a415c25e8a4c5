"""Find the fastest tiling of a decode step's expert GEMMs on a GPU.

    python -m benchmarks.thinker.tune_decode_moe --compile 8    # every candidate, in 8 processes
    python -m benchmarks.thinker.tune_decode_moe --out FILE

The time is that of everything that a layer does for its experts, from the router to the sum, as
CUDA graphs of consecutive layers with different experts. The up-projection is tiled first, then the
down-projection; then the number of tiles of down-projection weights to prefetch is chosen. The best
are printed as lines of `TILINGS` in `sglang_omni/models/ming/thinker/decode_moe.py`.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch.multiprocessing.spawn import spawn
from triton.runtime.errors import OutOfResources

from benchmarks.thinker.decode_kernels import (
    LAYERS,
    ExpertLayers,
    random_bf16,
    time_layer_us,
)
from benchmarks.thinker.tune_small_batch_gemm import HIDDEN
from measurement.environment import fingerprint
from sglang_omni.models.ming.thinker.decode_moe import TILINGS, MoeTiling, select_tiling
from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import MoeGemmTile

TILES = [
    *(MoeGemmTile(32, 4, stages) for stages in (4, 6)),
    *(MoeGemmTile(64, 4, stages) for stages in (3, 4, 5, 6)),
    *(MoeGemmTile(128, 4, stages) for stages in (3, 4)),
    *(MoeGemmTile(128, 8, stages) for stages in (3, 4, 5)),
]
# Triton compiles one row, and counts that 16 divides, separately.
COMPILED_ROWS = (1, 8, 16)

Times = dict[MoeTiling, float]


def compile_share(which: int, processes: int) -> None:
    """Compile every `processes`-th candidate by running it once, from number `which`."""
    layers = ExpertLayers()
    base = select_tiling(1)
    tilings = [replace(base, up=tile, down=tile) for tile in TILES]
    for tiling in tilings[which::processes]:
        for rows in COMPILED_ROWS:
            fits_gpu(layers, tiling, rows)


def fits_gpu(layers: ExpertLayers, tiling: MoeTiling, rows: int) -> bool:
    """Return whether the tiling fits the GPU's resources. Runs it once."""
    try:
        layers.step.compute_parts(random_bf16(rows, HIDDEN), tiling)
    except OutOfResources:
        return False
    return True


def time_tilings(
    layers: ExpertLayers, rows: int, tilings: Sequence[MoeTiling], times: Times
) -> MoeTiling:
    """Add the microseconds of these tilings to `times`, and return the fastest in it."""
    xs = [random_bf16(rows, HIDDEN) for _ in range(LAYERS)]

    def compute(tiling: MoeTiling, index: int) -> object:
        return layers.step.compute_parts(xs[index], tiling)

    for tiling in tilings:
        if tiling not in times and fits_gpu(layers, tiling, rows):
            times[tiling] = time_layer_us(partial(compute, tiling))
    return min(times, key=times.__getitem__)


def tune(layers: ExpertLayers, rows: int) -> Times:
    """Return the microseconds of every tiling tried at this number of rows, the fastest first."""
    times: Times = {}
    best = time_tilings(
        layers, rows, [replace(select_tiling(rows), up=tile) for tile in TILES], times
    )
    time_tilings(layers, rows, [replace(best, down=tile) for tile in TILES], times)
    return dict(sorted(times.items(), key=lambda pair: pair[1]))


def main() -> None:
    """Time every tiling, print the fastest and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", type=int, help="compile all in this many processes, then exit")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.compile:
        spawn(compile_share, (options.compile,), options.compile)
        return
    layers, times_by_rows = ExpertLayers(), {}
    for rows in TILINGS:
        times = tune(layers, rows)
        best = next(iter(times))
        print(
            f"    {rows}: {best},  # {times[best]:.1f} us, before {times[select_tiling(rows)]:.1f}"
        )
        times_by_rows[str(rows)] = {str(tiling): tiling_us for tiling, tiling_us in times.items()}
    if options.out:
        result = {"environment": fingerprint(), "microseconds": times_by_rows}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
