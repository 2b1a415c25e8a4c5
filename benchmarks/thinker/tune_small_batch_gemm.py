"""Find the fastest tiling of a decode step's GEMMs of few rows with FP8 weights.

    python -m benchmarks.thinker.tune_small_batch_gemm --compile 8    # every candidate, 8 processes
    python -m benchmarks.thinker.tune_small_batch_gemm --out FILE

Each number of rows is tried on the attention matrices of the released shape, as CUDA graphs in
which every launch reads another weight, so that none is in the cache, and on one weight that stays
in the cache, as a prefetched output projection does. SGLang's CUTLASS GEMM is timed beside it. The
output head has tilings of its own, which write float32; beside it, a head in bfloat16 is timed as
SGLang runs it, with the copy of its logits to float32. Kernels use programmatic dependent launch,
as in a decode step. The best are printed as lines of `TILES` and `HEAD_TILES` in
`sglang_omni/models/ming/thinker/small_batch_gemm_triton.py`. `--matrices head` tunes the head
alone.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import torch
from torch import Tensor
from torch.multiprocessing.spawn import spawn
from triton.runtime.errors import OutOfResources

from benchmarks.thinker.shapes import SHAPE
from benchmarks.tools import cuda_graphs
from measurement.environment import fingerprint
from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import (
    TILES,
    WORKSPACE_SIZE,
    SmallBatchTile,
    small_batch_linear,
)

HIDDEN = int(SHAPE["hidden_size"])
HEADS, KV_HEADS = int(SHAPE["num_attention_heads"]), int(SHAPE["num_key_value_heads"])
HEAD = int(SHAPE["head_dim"])
MATRICES = {"qkv": ((HEADS + 2 * KV_HEADS) * HEAD, HIDDEN), "dense": (HIDDEN, HEADS * HEAD)}
HEAD_SHAPE = int(SHAPE["vocab_size"]), HIDDEN
HEAD_COUNT = 2
"""Heads that are read in turn: one is larger than any cache."""
LAUNCHES, REPLAYS = 12, 5
ATTENTION, OUTPUT_HEAD = "attention", "head"

Weights = Sequence[tuple[Tensor, Tensor]]


def candidates(rows: int) -> list[SmallBatchTile]:
    """Return the tilings to try: few programs with long sums, or many with short ones.

    Above 16 rows, the list also has tilings with activations in FP8.
    """
    direct = [
        *product((16,), (1, 2, 4), (1, 2, 4), (4, 8)),
        *product((32,), (1, 2, 4), (2, 4), (4, 6, 8)),
        *product((64,), (2, 3, 4, 8), (2, 4) if rows > 32 else (4,), (3, 4, 6)),
        *product((128,), (3, 4, 6, 8), (4, 8), (3, 4)),
    ]
    swapped = [*product((64,), (2, 4, 8), (4,), (3, 4)), *product((128,), (3, 4, 6), (4, 8), (3,))]
    tiles = [SmallBatchTile(*values) for values in direct if values[0] > 32 or rows <= 32]
    tiles += [SmallBatchTile(*values, swapped=True) for values in swapped if rows > 16]
    if rows <= 16:
        return tiles
    fp8_tilings = [
        *product((64,), (1, 2, 3, 4, 6, 8), (4,), (3, 4, 6), (True, False)),
        *product((128,), (2, 3, 4, 6, 8), (4, 8), (3, 4), (True, False)),
        *product((32,), (1, 2), (4,), (4, 6), (False,)),
    ]
    return tiles + [SmallBatchTile(*values, fp8=True) for values in fp8_tilings]


def head_candidates(rows: int) -> list[SmallBatchTile]:
    """Return the tilings of the output head to try, which need no split sums."""
    sizes = [
        *product((32, 64), (1,), (2, 4), (3, 4, 6)),
        *product((128,), (1,), (4, 8), (2, 3, 4, 6)),
    ]
    tiles = [SmallBatchTile(*values) for values in sizes]
    four_warps = [values for values in sizes if values[0] >= 64 and values[2] >= 4]
    tiles += [SmallBatchTile(*values, swapped=True) for values in four_warps]
    if rows <= 16:
        return tiles
    return tiles + [
        SmallBatchTile(*values, swapped=swapped, fp8=True)
        for values, swapped in product(four_warps, (False, True))
    ]


def random_rows(rows: int) -> Tensor:
    """Return random rows in bfloat16 on the GPU."""
    return torch.randn(rows, HIDDEN, device="cuda", dtype=torch.bfloat16)


def compile_share(which: int, processes: int, row_counts: Sequence[int]) -> None:
    """Compile every `processes`-th candidate by running it once, from number `which`."""
    space = Workspace(WORKSPACE_SIZE, torch.device("cuda"))
    weight, scale = random_fp8_weights(*MATRICES["dense"], count=1)[0]
    every = [(rows, tile) for rows in row_counts for tile in candidates(rows)]
    for rows, tile in every[which::processes]:
        with suppress(OutOfResources):
            small_batch_linear(random_rows(rows), weight, scale, space, tile, pdl=True)
    every_head = [(rows, tile) for rows in row_counts for tile in head_candidates(rows)]
    for rows, tile in every_head[which::processes]:
        logits = torch.empty(rows, len(weight), device="cuda")
        with suppress(OutOfResources):
            small_batch_linear(random_rows(rows), weight, scale, space, tile, pdl=True, out=logits)


def random_fp8_weights(
    rows: int, columns: int, count: int = LAUNCHES
) -> list[tuple[Tensor, Tensor]]:
    """Draw `count` random FP8 weights of one shape, with their scales."""
    device = torch.device("cuda")
    weights = []
    for _ in range(count):
        weight = torch.randn(rows, columns, device=device).to(torch.float8_e4m3fn)
        weights.append((weight, torch.rand(rows // BLOCK, columns // BLOCK, device=device)))
    return weights


def time_gemm_us(run: Callable[[Tensor, Tensor], object], weights: Weights) -> float:
    """Return the microseconds of one GEMM; infinity where it does not fit the GPU."""
    try:
        run(*weights[0])
    except OutOfResources:
        return float("inf")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for weight, scale in weights:
            run(weight, scale)
    return 1e3 * cuda_graphs.mean_replay_ms(graph, REPLAYS) / len(weights)


Times = dict[str, float]
Ranking = dict[str, Times]
"""Microseconds by matrix, of each tiling and of what is timed beside them; the fastest first."""


def tune_attention(row_counts: Sequence[int]) -> dict[str, Ranking]:
    """Time every tiling of the matrices of attention, by number of rows."""
    from sglang.srt.layers.quantization.fp8_utils import (
        cutlass_w8a8_block_fp8_linear_with_fallback as sglang_linear,
    )

    space = Workspace(WORKSPACE_SIZE, torch.device("cuda"))
    weights = {name: random_fp8_weights(*shape) for name, shape in MATRICES.items()}
    weights["dense, held"] = random_fp8_weights(*MATRICES["dense"], count=1) * LAUNCHES

    def time_sglang_us(x: Tensor, matrices: Weights) -> float:
        return time_gemm_us(lambda w, s: sglang_linear(x, w, [BLOCK, BLOCK], s), matrices)

    def time_tile_us(x: Tensor, tile: SmallBatchTile, matrices: Weights) -> float:
        return time_gemm_us(
            lambda w, s: small_batch_linear(x, w, s, space, tile, pdl=True), matrices
        )

    rankings: dict[str, Ranking] = {}
    for rows in row_counts:
        x = random_rows(rows)
        sglang_us = {name: time_sglang_us(x, matrices) for name, matrices in weights.items()}
        times = {
            tile: {name: time_tile_us(x, tile, matrices) for name, matrices in weights.items()}
            for tile in candidates(rows)
            if tile.split * rows * MATRICES["qkv"][0] <= WORKSPACE_SIZE
        }
        rankings[str(rows)] = rank(rows, times, {"sglang": sglang_us})
    return rankings


def tune_head(row_counts: Sequence[int]) -> dict[str, Ranking]:
    """Time every tiling of the output head, by number of rows."""
    space = Workspace(WORKSPACE_SIZE, torch.device("cuda"))
    weights = random_fp8_weights(*HEAD_SHAPE, HEAD_COUNT)
    plain = [(weight.to(torch.bfloat16), scale) for weight, scale in weights]
    rankings: dict[str, Ranking] = {}
    for rows in row_counts:
        x, logits = random_rows(rows), torch.empty(rows, HEAD_SHAPE[0], device="cuda")
        bf16_us = time_gemm_us(lambda w, _: logits.copy_(torch.matmul(x, w.T)), plain)  # noqa: B023
        times = {}
        for tile in head_candidates(rows):
            head_us = time_gemm_us(
                lambda w, s: small_batch_linear(x, w, s, space, tile, pdl=True, out=logits),  # noqa: B023
                weights,
            )
            times[tile] = {OUTPUT_HEAD: head_us}
        rankings[str(rows)] = rank(rows, times, {"bfloat16": {OUTPUT_HEAD: bf16_us}})
    return rankings


def rank(rows: int, times: dict[SmallBatchTile, Times], others: Ranking) -> Ranking:
    """Print the best tiling of each matrix, and return all of them, the fastest first."""
    beside = "; ".join(f"{name}: {format_times(us)}" for name, us in others.items())
    for matrix in next(iter(times.values())):
        best, _ = min(times.items(), key=lambda pair: pair[1][matrix])
        print(
            f"    {rows}: {best},  # best for {matrix}: {format_times(times[best])}; {beside}",
            flush=True,
        )
    ranked = sorted(times.items(), key=lambda pair: sum(pair[1].values()))
    return {**others, **{str(tile): tiling_us for tile, tiling_us in ranked}}


TUNED: dict[str, Callable[[Sequence[int]], dict[str, Ranking]]] = {
    ATTENTION: tune_attention,
    OUTPUT_HEAD: tune_head,
}


def main() -> None:
    """Time every tiling, print the fastest and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", type=int, help="compile all in this many processes, then exit")
    parser.add_argument("--rows", type=int, nargs="+", choices=TILES, default=list(TILES))
    parser.add_argument("--matrices", nargs="+", choices=TUNED, default=list(TUNED))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.compile:
        arguments = options.compile, options.rows
        spawn(compile_share, arguments, options.compile)
        return
    times = {name: TUNED[name](options.rows) for name in options.matrices}
    if options.out:
        result = {"environment": fingerprint(), "microseconds": times}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def format_times(times: Times) -> str:
    """Format times by name."""
    return ", ".join(f"{name} {microseconds:.1f} us" for name, microseconds in times.items())


if __name__ == "__main__":
    main()
