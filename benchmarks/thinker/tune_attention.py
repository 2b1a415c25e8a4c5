"""Find the fastest tiling of a decode step's attention, beside SGLang's two kernels.

    python -m benchmarks.thinker.tune_attention --out FILE

Each side is a CUDA graph of consecutive layers, each with a cache of its own: the kernel before
attention, which normalises and stores queries and keys, and attention itself, at the released
shape. Times are microseconds of both per layer. SGLang's are those of its Triton backend, with the
number of parts that it computes at the start of a step. The best tilings of `LENGTHS[0]` tokens are
printed as lines of `TILES` in `sglang_omni/models/ming/thinker/attention_triton.py`.
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

from benchmarks.thinker.decode_kernels import LAYERS, random_bf16, time_layer_us
from benchmarks.thinker.tune_small_batch_gemm import HEAD, HEADS, KV_HEADS
from measurement.environment import fingerprint
from sglang_omni.models.ming.thinker.attention_triton import (
    TILES,
    WORKSPACE_PROGRAMS,
    AttentionTile,
    CachedTokens,
    attend,
    attend_plainly,
    select_tile,
)
from sglang_omni.models.ming.thinker.rope_triton import LayerKVCache, prepare_queries_and_keys

LENGTHS = (256, 2048, 16_384)
"""Tokens of each row. Only the first is tuned; with the others, the shipped tile is timed."""
MAX_TOKENS = 1 << 18
"""Of all rows of a layer; longer cases are left out, as 12 caches of them would be 6 GB."""
MAX_SPLITS = 8
"""SGLang's `triton_attention_num_kv_splits`."""
SCALE = HEAD**-0.5
LayerCall = Callable[[int], Tensor]


def candidates(rows: int) -> list[AttentionTile]:
    """Return the tilings to try: no more programs than the workspace has room for."""
    sizes = product((16, 32, 64, 128), (1, 2, 4, 8, 16, 32), (2, 4, 8), (2, 3))
    return [
        AttentionTile(*size)
        for size in sizes
        if size[1] * rows <= WORKSPACE_PROGRAMS
        and 16 <= size[1] * size[0] <= 1024
        and size[0] // size[2] <= 32
    ]


class Layers:
    """Layers of attention with random caches, in which every row has as many tokens."""

    def __init__(self, rows: int, length: int) -> None:
        self._rows, self._length = rows, length
        slots = rows * length
        self._table = torch.arange(slots, device="cuda", dtype=torch.int32).view(rows, length)
        self._requests = torch.arange(rows, device="cuda")
        self._lengths = torch.full((rows,), length, device="cuda")
        self._caches = [
            [random_bf16(slots, KV_HEADS, HEAD) for _ in range(2)] for _ in range(LAYERS)
        ]
        self._qkv = random_bf16(rows, (HEADS + 2 * KV_HEADS) * HEAD)
        self._gains = random_bf16(HEAD), random_bf16(HEAD)
        # Half of a head is rotated, in pairs.
        shape = rows, HEAD // 4
        self._angles = torch.rand(shape, device="cuda"), torch.rand(shape, device="cuda")
        self._newest_slots = self._table[:, -1].long()

    def prepare(self, layer: int) -> tuple[Tensor, tuple[Tensor, Tensor], CachedTokens]:
        """Run the kernel before attention; return the arguments of `attend`."""
        keys, values = self._caches[layer]
        cache = LayerKVCache(keys, values, self._newest_slots)
        query, key = prepare_queries_and_keys(
            self._qkv, self._gains, self._angles, (HEADS, KV_HEADS), 1e-6, cache, pdl=True
        )
        cached = CachedTokens(keys, values, self._table, self._requests, self._lengths)
        return query, (key, self._qkv[:, -KV_HEADS * HEAD :]), cached

    def build_ours(self, tile: AttentionTile) -> LayerCall:
        """Return a layer with our kernel."""
        return lambda layer: attend(*self.prepare(layer), (HEADS, KV_HEADS), SCALE, tile, pdl=True)

    def build_sglang(self) -> LayerCall:
        """Return a layer with SGLang's Triton kernels."""
        from sglang.srt.layers.attention.triton_ops.decode_attention import decode_attention_fwd
        from sglang.srt.layers.attention.triton_ops.metadata import get_num_kv_splits_triton

        rows = self._rows
        logits = torch.empty(rows, HEADS, MAX_SPLITS, HEAD, device="cuda")
        sums = torch.empty(rows, HEADS, MAX_SPLITS, device="cuda")
        splits = torch.empty(rows, device="cuda", dtype=torch.int32)
        cores = torch.cuda.get_device_properties(0).multi_processor_count
        get_num_kv_splits_triton[(1,)](
            splits, self._lengths, rows, 1, HEADS, KV_HEADS, MAX_SPLITS, cores, MAX_NUM_SEQ=256
        )
        starts = torch.arange(rows + 1, device="cuda", dtype=torch.int32) * self._length
        indices = self._table.flatten().long()

        def run(layer: int) -> Tensor:
            query, _, cached = self.prepare(layer)
            out = torch.empty_like(query)
            decode_attention_fwd(
                query.view(rows, HEADS, HEAD),
                cached.keys,
                cached.values,
                out.view(rows, HEADS, HEAD),
                starts,
                indices,
                logits,
                sums,
                splits,
                MAX_SPLITS,
                SCALE,
                1.0,
                1.0,
                use_pdl=True,
            )
            return out

        return run

    def find_error(self, run: LayerCall) -> float:
        """Return how far a layer is from the plain rule, relative to its size."""
        wanted = attend_plainly(*self.prepare(0), (HEADS, KV_HEADS), SCALE)
        return float((run(0).float() - wanted).norm() / wanted.norm())


def time_tile_us(run: LayerCall) -> float:
    """Return the microseconds of one layer; infinity where a tiling does not fit the GPU."""
    try:
        return time_layer_us(run)
    except OutOfResources:
        return float("inf")


def measure(rows: int, length: int, tiles: Sequence[AttentionTile]) -> dict[str, float]:
    """Time SGLang's kernels and each tiling, the fastest first, and print the best."""
    layers = Layers(rows, length)
    sglang = layers.build_sglang()
    sglang_us, sglang_error = time_layer_us(sglang), layers.find_error(sglang)
    times = {tile: time_tile_us(layers.build_ours(tile)) for tile in tiles}
    ranked = sorted(times.items(), key=lambda pair: pair[1])
    best, best_us = ranked[0]
    shipped = select_tile(rows)
    shipped_us = times.get(shipped) or time_tile_us(layers.build_ours(shipped))
    error = layers.find_error(layers.build_ours(best))
    print(
        f"    {rows}: {best},  # {length} tokens: {best_us:.1f} us, shipped {shipped_us:.1f}, "
        f"SGLang's {sglang_us:.1f}; errors {error:.4f}, {sglang_error:.4f}",
        flush=True,
    )
    return {"sglang": sglang_us, **{str(tile): us for tile, us in ranked}}


def compile_share(which: int, processes: int) -> None:
    """Compile every `processes`-th candidate by running it once, from number `which`."""
    # One row has all of them, and their code does not depend on the number of rows.
    layers = Layers(rows=1, length=16)
    for tile in candidates(1)[which::processes]:
        with suppress(OutOfResources):
            layers.build_ours(tile)(0)


def main() -> None:
    """Time every tiling, print the fastest and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", type=int, help="compile all in this many processes, then exit")
    parser.add_argument("--rows", type=int, nargs="+", choices=TILES, default=list(TILES))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.compile:
        spawn(compile_share, (options.compile,), options.compile)
        return
    times: dict[str, dict[str, dict[str, float]]] = {}
    for length, rows in product(LENGTHS, options.rows):
        if rows * length > MAX_TOKENS:
            continue
        tiles = candidates(rows) if length == LENGTHS[0] else [select_tile(rows)]
        times.setdefault(str(length), {})[str(rows)] = measure(rows, length, tiles)
        torch.cuda.empty_cache()
    if options.out:
        result = {"environment": fingerprint(), "microseconds": times}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
