"""Find the fastest tilings of the talker's kernels on this GPU, at the released shapes.

    python -m benchmarks.talker.tune_kernels --compile 8      # every candidate, in 8 processes
    python -m benchmarks.talker.tune_kernels --out result.json

The flow model's GEMMs for one stream are timed inside a chain of its blocks, one GEMM after the
other, because each starts while the previous one still runs (programmatic dependent launch).
Attention, norm and window are timed alone at 128 streams. The fastest are printed as lines for
`fast/tiling.py`, `kernels/rows.py` and `kernels/window.py` in `sglang_omni/models/ming/speech`.
"""

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.multiprocessing.spawn import spawn
from triton.runtime.errors import OutOfResources

from benchmarks.talker.shapes import TALKER, VAE
from measurement.environment import fingerprint
from sglang_omni.engines.speech.launch import build_environment
from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech.dit import BlockStack, DiT
from sglang_omni.models.ming.speech.fast import tiling as tiles
from sglang_omni.models.ming.speech.fast.graphs import Graph
from sglang_omni.models.ming.speech.fast.layers import run_flow_blocks
from sglang_omni.models.ming.speech.fast.ops import FusedOps, LibraryOps, Ops
from sglang_omni.models.ming.speech.fast.packed import FlowStack, pack_flow
from sglang_omni.models.ming.speech.kernels.attention import AttentionTiling, short_attention
from sglang_omni.models.ming.speech.kernels.linear import FusedNormInput, LinearTile, linear
from sglang_omni.models.ming.speech.kernels.rows import rms_norm
from sglang_omni.models.ming.speech.kernels.window import window_attention
from sglang_omni.models.weights import use_device_and_dtype

STREAMS, LENGTH, PATCH = 128, 37, 4
SHARED_MEMORY = 200 * 2**10
REPLAYS = 30
COPIES = 8

Choice = TypeVar("Choice")


def tile_candidates(outputs: int, inputs: int) -> Iterator[LinearTile]:
    """Yield tiles for a GEMM of 74 rows, high enough for all of the rows or for most."""
    splits = (2, 4, 8) if inputs >= 4096 else (1, 2, 4) if outputs <= 1024 else (1, 2)
    columns = (16, 32, 64) if outputs <= 1024 and inputs < 4096 else (32, 64, 128)
    for rows, cols, depth, split in product((64, 128), columns, (64, 128), splits):
        if rows == 64 and depth == 64:
            continue
        stages = min(6, SHARED_MEMORY // (2 * depth * (rows + cols)))
        yield LinearTile(rows, cols, depth, split, warps=4 if rows == 64 else 8, stages=stages)


def tiling_candidates() -> Iterator[AttentionTiling]:
    """Yield ways to distribute attention among programs."""
    for heads, warps, stages in product((1, 2, 4), (1, 2, 4), (1, 2)):
        if heads > 1 or stages == 2:
            yield AttentionTiling(heads, warps, stages)


def random_flow(device: torch.device) -> FlowStack:
    """Return the flow model's packed blocks with random weights."""
    with use_device_and_dtype(device, torch.bfloat16):
        flow: BlockStack = DiT(TALKER.flow, TALKER.llm.hidden_size)
    flow.to(torch.bfloat16)
    for weight in flow.parameters():
        torch.nn.init.normal_(weight, std=0.02)
    return pack_flow(flow.requires_grad_(False), LENGTH)


def median_graph_ms(run: Callable[[], object]) -> float:
    """Return the median time of a call as a CUDA graph, in milliseconds."""
    times = []
    with torch.cuda.stream(torch.cuda.Stream()):
        graph = Graph(run, torch.cuda.graph_pool_handle())
        for _ in range(REPLAYS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def time_block_us(flow: FlowStack, sequences: int, ops: Ops, tail: Ops) -> float:
    """Return the microseconds of a block of the flow model, the mean over all blocks."""
    first = torch.randn(
        sequences, LENGTH, TALKER.flow.hidden_size, device="cuda", dtype=torch.bfloat16
    )
    tokens = torch.empty_like(first)

    def run() -> None:
        tokens.copy_(first)
        run_flow_blocks(flow, tokens, slice(-PATCH, None), ops, tail)

    return 1e3 * median_graph_ms(run) / len(flow.blocks)


def find_fastest(choices: Sequence[Choice], time: Callable[[Choice], float]) -> tuple[Choice, Any]:
    """Return the fastest choice, and the times of all by name."""
    times = {choice: _time_if_fits(choice, time) for choice in choices}
    best = min(choices, key=times.__getitem__)
    ranked = sorted(times.items(), key=lambda pair: pair[1])
    return best, {str(choice): round(microseconds, 3) for choice, microseconds in ranked}


def _time_if_fits(choice: Choice, time: Callable[[Choice], float]) -> float:
    try:
        return time(choice)
    except OutOfResources:
        return float("inf")


def tune_gemms(flow: FlowStack) -> Iterator[tuple[str, LinearTile, Any]]:
    """Tune each GEMM of a block in turn, the most expensive first.

    Tuned ones keep their best tile.
    """
    ops = FusedOps(Workspace(1 << 23, torch.device("cuda")), pdl=True)
    shapes = {"DOWN": (1024, 4096), "UP": (4096, 1024), "OUT": (1024, 1024), "QKV": (3072, 1024)}
    for name, shape in shapes.items():
        current = tiles.FLOW_TILES[shape]

        def time(tile: LinearTile, shape: tuple[int, int] = shape) -> float:
            tiles.FLOW_TILES[shape] = tile
            return time_block_us(flow, 2, ops, ops)

        best, times = find_fastest([current, *tile_candidates(*shape)], time)
        # A kernel may start on a multiprocessor once its shared memory fits beside that of the
        # previous one, so fewer stages can be faster.
        stages = [replace(best, stages=count) for count in range(2, best.stages)]
        best, times_by_stages = find_fastest([best, *stages], time)
        tiles.FLOW_TILES[shape] = best
        yield f"FLOW_{name}", best, {**times, **times_by_stages}


def time_attention_us(sequences: int, cut: AttentionTiling, pdl: bool) -> float:
    """Return the microseconds of attention in this number of sequences."""
    heads, width = TALKER.flow.num_heads, TALKER.flow.hidden_size
    qkv = [random_rows(sequences, LENGTH, 3 * width) for _ in range(COPIES)]
    cos, sin = random_rows(2, LENGTH, width // heads // 2)

    def run() -> None:
        for rows in qkv:
            short_attention(rows, cos, sin, heads, slice(None), tiling=cut, pdl=pdl)

    return 1e3 * median_graph_ms(run) / COPIES


def time_norm_us(warps: int) -> float:
    """Return the microseconds of a norm of all rows of the flow model."""
    x = [random_rows(2 * STREAMS * LENGTH, 1024) for _ in range(COPIES)]
    gain, shift = random_rows(1024), torch.zeros(1024, device="cuda")

    def run() -> None:
        for rows in x:
            rms_norm(rows, gain, 1e-6, shift, warps=warps)

    return 1e3 * median_graph_ms(run) / COPIES


def time_window_us(warps: int) -> float:
    """Return the microseconds of the vocoder's attention."""
    config, frames = VAE.decoder.backbone, 16
    size, kv = config.head_dim, config.num_key_value_heads
    qkv = random_rows(STREAMS, frames, (config.num_attention_heads + 2 * kv) * size)
    keys, values = (random_rows(STREAMS, kv, 64 + frames, size) for _ in range(2))
    index = torch.arange(STREAMS, device="cuda")
    starts, (cos, sin) = torch.full_like(index, 160), random_rows(2, 1024, size // 2)

    def run() -> None:
        for _ in range(COPIES):
            window_attention(qkv, keys, values, index, starts, cos, sin, 64, warps=warps)

    return 1e3 * median_graph_ms(run) / COPIES


def random_rows(*shape: int) -> Tensor:
    """Return bfloat16 numbers of a standard normal distribution on the GPU."""
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def tune(flow: FlowStack) -> Iterator[tuple[str, Any, Mapping[str, float]]]:
    """Yield each tuned constant's name, its best value, and the microseconds of all candidates."""
    yield from tune_gemms(flow)
    few = [AttentionTiling(1, warps) for warps in (1, 2, 4, 8)]
    yield "FEW_SEQUENCES", *find_fastest(few, lambda cut: time_attention_us(2, cut, pdl=True))
    many = list(tiling_candidates())
    yield (
        "MANY_SEQUENCES",
        *find_fastest(many, lambda cut: time_attention_us(2 * STREAMS, cut, False)),
    )
    yield "NORM_WARPS", *find_fastest((1, 2, 4, 8), time_norm_us)
    yield "WARPS", *find_fastest((1, 2, 4), time_window_us)


def compile_share(which: int, processes: int) -> None:
    """Compile every `processes`-th candidate by running it once, from number `which`."""
    calls = list(candidate_calls(Workspace(1 << 23, torch.device("cuda"))))
    for call in calls[which::processes]:
        with suppress(OutOfResources):
            call()


def candidate_calls(space: Workspace) -> Iterator[Callable[[], object]]:
    """Yield every candidate as a block runs it.

    A GEMM after a norm is a separate kernel for each number of parts of the sums of squares, which
    follows from the tile of the previous GEMM.
    """
    for outputs, inputs in tiles.FLOW_TILES:
        x, weight = random_rows(2 * LENGTH, inputs), random_rows(outputs, inputs)
        out, gain = random_rows(2 * LENGTH, outputs), random_rows(outputs)
        for tile in tile_candidates(outputs, inputs):
            call = partial(linear, weight=weight, out=out, tile=tile, workspace=space, pdl=True)
            call = partial(call, bias=gain)
            if outputs == 1024:
                yield partial(call, x, add=True, next_norm=(gain, 1e-6))
                continue
            for parts in (64,) if outputs == 4096 else (1, 8, 16, 32):
                squares = torch.ones(2 * LENGTH, parts, device="cuda")
                yield partial(call, FusedNormInput(x, squares, 1e-6), gelu=outputs == 4096)


def main() -> None:
    """Compile, or tune, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", type=int, help="compile all in this many processes, then exit")
    parser.add_argument("--library", action="store_true", help="only time blocks of 128 streams")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ |= build_environment("cuda", 1)
    if options.compile:
        spawn(compile_share, (options.compile,), options.compile)
        return
    device = torch.device("cuda")
    with torch.inference_mode():
        flow, cublas = random_flow(device), LibraryOps()
        fused_ops = FusedOps(Workspace(1 << 23, device), pdl=True)
        print(f"block, 128 streams: {time_block_us(flow, 2 * STREAMS, cublas, cublas):.2f} us")
        if options.library:
            return
        print(f"block, one stream: {time_block_us(flow, 2, fused_ops, fused_ops):.2f} us")
        times_by_name = {}
        for name, best, times in tune(flow):
            times_by_name[name] = times
            print(f"{name} = {best}  # {', '.join(map(str, list(times.values())[:6]))}", flush=True)
        print(f"block, one stream: {time_block_us(flow, 2, fused_ops, fused_ops):.2f} us")
    if options.out:
        result = {"environment": fingerprint(), "microseconds": times_by_name}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
