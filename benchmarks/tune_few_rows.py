"""Find how products of a decode step's rows with weights in eight bits are best cut.

    python -m benchmarks.tune_few_rows --compile 8      # all candidates, in so many processes
    python -m benchmarks.tune_few_rows --out FILE

Each number of rows is tried on the matrices of attention at the released shape, as CUDA graphs in
which every launch meets another weight, so that none is in the cache, and on one that is held
there, as the output's is that was asked for; beside it SGLang's product by CUTLASS. Kernels are
chained, as in a step. What is best for each is printed, as lines of `TILES` in
`sglang_omni/models/ming/thinker/small_batch_gemm_triton.py`.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, multiprocessing
from triton.runtime.errors import OutOfResources

from benchmarks import replays
from benchmarks.environment import fingerprint
from benchmarks.thinker_shapes import SHAPE
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
LAUNCHES, REPLAYS = 12, 5

Weights = Sequence[tuple[Tensor, Tensor]]


def candidates(rows: int) -> list[SmallBatchTile]:
    """Ways to cut: few programs with long sums, or many with short ones; of more than 16 rows,
    also with these in eight bits."""
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
    eight = [
        *product((64,), (1, 2, 3, 4, 6, 8), (4,), (3, 4, 6), (True, False)),
        *product((128,), (2, 3, 4, 6, 8), (4, 8), (3, 4), (True, False)),
        *product((32,), (1, 2), (4,), (4, 6), (False,)),
    ]
    return tiles + [SmallBatchTile(*values, fp8=True) for values in eight]


def rows_of(rows: int) -> Tensor:
    """Random rows."""
    return torch.randn(rows, HIDDEN, device="cuda", dtype=torch.bfloat16)


def compile_some(which: int, processes: int, heights: Sequence[int]) -> None:
    """Every so-manieth candidate is run once, and so is compiled and kept."""
    space = Workspace(WORKSPACE_SIZE, torch.device("cuda"))
    weight, scale = draw(*MATRICES["dense"], count=1)[0]
    every = [(rows, tile) for rows in heights for tile in candidates(rows)]
    for rows, tile in every[which::processes]:
        with suppress(OutOfResources):
            small_batch_linear(rows_of(rows), weight, scale, space, tile, pdl=True)


def draw(rows: int, columns: int, count: int = LAUNCHES) -> list[tuple[Tensor, Tensor]]:
    """Random quantised weights of one shape."""
    device = torch.device("cuda")
    made = []
    for _ in range(count):
        weight = torch.randn(rows, columns, device=device).to(torch.float8_e4m3fn)
        made.append((weight, torch.rand(rows // BLOCK, columns // BLOCK, device=device)))
    return made


def microseconds(run: Callable[[Tensor, Tensor], object], weights: Weights) -> float:
    """Time of one product; endless where it does not fit the card."""
    try:
        run(*weights[0])
    except OutOfResources:
        return float("inf")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for weight, scale in weights:
            run(weight, scale)
    return 1e3 * replays.milliseconds(graph, REPLAYS) / len(weights)


def main() -> None:
    """Time everything, print the best, write all."""
    from sglang.srt.layers.quantization.fp8_utils import (
        cutlass_w8a8_block_fp8_linear_with_fallback as library,
    )

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", type=int, help="compile all, in so many processes, and end")
    parser.add_argument("--rows", type=int, nargs="+", choices=TILES, default=list(TILES))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.compile:
        given = options.compile, options.rows
        multiprocessing.spawn(compile_some, given, options.compile)
        return
    space = Workspace(WORKSPACE_SIZE, torch.device("cuda"))
    weights = {name: draw(*shape) for name, shape in MATRICES.items()}
    weights["dense, held"] = draw(*MATRICES["dense"], count=1) * LAUNCHES
    found: dict[str, object] = {}
    for rows in options.rows:
        x = rows_of(rows)
        theirs = {
            name: microseconds(lambda w, s, x=x: library(x, w, [BLOCK, BLOCK], s), some)
            for name, some in weights.items()
        }
        times = {
            tile: {
                name: microseconds(
                    lambda w, s, x=x, tile=tile: small_batch_linear(x, w, s, space, tile, pdl=True),
                    some,
                )
                for name, some in weights.items()
            }
            for tile in candidates(rows)
            if tile.split * rows * MATRICES["qkv"][0] <= WORKSPACE_SIZE
        }
        for name in weights:
            best = min(times, key=lambda tile, name=name: times[tile][name])
            took = f"{shown(times[best])}, SGLang's {theirs[name]:.1f} us"
            print(f"    {rows}: {best},  # best for {name}: {took}", flush=True)
        ranked = sorted(times.items(), key=lambda pair: sum(pair[1].values()))
        found[str(rows)] = {"sglang": theirs, **{str(tile): took for tile, took in ranked}}
    if options.out:
        result = {"environment": fingerprint(), "microseconds": found}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def shown(times: dict[str, float]) -> str:
    """Times by name."""
    return ", ".join(f"{name} {took:.1f} us" for name, took in times.items())


if __name__ == "__main__":
    main()
