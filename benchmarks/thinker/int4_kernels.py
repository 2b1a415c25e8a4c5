"""Compile every tiling of the four-bit expert products, and say what each kernel needs.

    python -m benchmarks.thinker.int4_kernels --processes 8 --out FILE

It needs no GPU, and compiles for Hopper GPUs at the released shape: the tilings in use and those
that `benchmarks.thinker.tune_int4` tries, which then finds them in Triton's cache. The table has
for each kernel the registers of a thread, the bytes of those that spill, the shared memory of a
program, how many programs a multiprocessor runs at once and a launch has, and the instructions of a
warp for each KiB of weights. Exits with an error if a kernel spills or does not fit.
"""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor
from triton.runtime.errors import OutOfResources

from benchmarks.thinker.shapes import SHAPE
from benchmarks.tools.hopper import KernelResources, compile_launches, read_resources
from measurement.environment import fingerprint
from sglang_omni.models.ming.thinker.decode_moe_triton import ExpertOrder
from sglang_omni.models.ming.thinker.int4.gemm_triton import Int4GemmTile, multiply_int4_experts
from sglang_omni.models.ming.thinker.int4.layout import GROUP, TILE_ROWS, WORDS
from sglang_omni.models.ming.thinker.int4.tilings import FOLDER, load_int4_tilings
from sglang_omni.models.ming.thinker.int4.weights import Int4Matrix

HIDDEN, WIDTH = int(SHAPE["hidden_size"]), int(SHAPE["moe_intermediate_size"])
EXPERTS, TOP_K = int(SHAPE["num_experts"]) + 1, int(SHAPE["num_experts_per_tok"]) + 1
# Weight rows and columns of both products.
SIZES = {"up": (2 * WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
DECODE_ROWS, PREFILL_ROWS = (1, 8, 16, 32, 64), (256, 1024, 4096)
DECODE_HEIGHTS, PREFILL_HEIGHTS = (8, 16), (16, 32, 64, 128)
DECODE_TILES = [
    *(Int4GemmTile(64, 4, stages) for stages in (4, 6)),
    *(Int4GemmTile(64, 2, stages) for stages in (4, 6)),
    *(Int4GemmTile(128, 4, stages) for stages in (3, 4)),
    *(Int4GemmTile(128, 2, stages) for stages in (3, 4)),
    Int4GemmTile(256, 4, 3),
]
PREFILL_TILES = [
    *(Int4GemmTile(64, 4, stages) for stages in (2, 3, 4)),
    *(Int4GemmTile(128, 8, stages) for stages in (2, 3, 4)),
    Int4GemmTile(128, 4, 3),
    Int4GemmTile(64, 2, 4),
    Int4GemmTile(128, 2, 3),
]
# With more, the sums of a thread and the product of a group, which is as large, would spill.
MAX_SUMS_PER_THREAD = 64
# Products of more rows need four warps for the instructions of Hopper GPUs.
MAX_HEIGHT_OF_TWO_WARPS = 32
# Kernels of other numbers of rows are the same.
COMPILED_ROWS = (1, 16, 256)


@dataclass(frozen=True)
class Int4Product:
    """One kernel: the product of `rows` rows, "up" or "down", in tiles of `height` rows."""

    name: str
    rows: int
    height: int
    tile: Int4GemmTile
    symmetric: bool = True

    @property
    def weight_kib(self) -> float:
        """Return the KiB of weights that a warp reads in one step of its loop."""
        return self.tile.cols * WORDS * 2 / self.tile.warps / 1024

    @property
    def programs(self) -> float:
        """Return the mean number of programs of a launch, with even routing."""
        routed = EXPERTS - 1
        share = self.rows * (TOP_K - 1) / routed
        used = routed * (1 - (1 - (TOP_K - 1) / routed) ** self.rows)
        tiles = max(used, routed * share / self.height) + -(-self.rows // self.height)
        return SIZES[self.name][0] // self.tile.cols * tiles * self.tile.split


def list_tiles(rows: int, height: int) -> list[Int4GemmTile]:
    """Return the tiles worth trying for one product of so many rows, in tiles of this height."""
    if rows not in DECODE_ROWS:
        return [tile for tile in PREFILL_TILES if _suits_height(tile, height)]
    # With more rows, experts alone fill the GPU.
    splits = {1: (1, 2, 4), 8: (1, 2)}.get(rows, (1,))
    return [
        replace(tile, split=split, zero_after=zero_after)
        for tile, split, zero_after in product(DECODE_TILES, splits, (False, True))
        # With four warps and 16 rows, Triton uses instructions that this does not spare.
        if not zero_after or height == 8 or tile.warps == 2
    ]


def _suits_height(tile: Int4GemmTile, height: int) -> bool:
    sums = tile.cols * height // (32 * tile.warps)
    return sums <= MAX_SUMS_PER_THREAD and (tile.warps > 2 or height <= MAX_HEIGHT_OF_TWO_WARPS)


def list_heights(rows: int) -> Sequence[int]:
    """Return the heights of tiles worth trying for so many rows."""
    return DECODE_HEIGHTS if rows in DECODE_ROWS else PREFILL_HEIGHTS


def iter_candidates() -> Iterator[Int4Product]:
    """Yield the kernels of the search."""
    for rows in COMPILED_ROWS:
        for name, height in product(SIZES, list_heights(rows)):
            for tile in list_tiles(rows, height):
                yield Int4Product(name, rows, height, tile)


def iter_in_use() -> Iterator[Int4Product]:
    """Yield the kernels of the tilings that are shipped, in both forms of the weights."""
    shipped = [load_int4_tilings(path.stem) for path in sorted(FOLDER.glob("*.json"))]
    for tilings, symmetric in product(shipped, (True, False)):
        for rows, tiling in tilings.items():
            yield Int4Product("up", rows, tiling.height, tiling.up, symmetric)
            yield Int4Product("down", rows, tiling.height, tiling.down, symmetric)


def compile_product(case: Int4Product) -> KernelResources | None:
    """Compile one kernel and return what it needs; None if that is more than a GPU has."""
    (n, k), slots = SIZES[case.name], case.rows * TOP_K
    is_up, split = case.name == "up", case.tile.split
    tiles = min(slots, slots // case.height + EXPERTS)
    order = ExpertOrder(
        _meta(tiles * case.height, dtype=torch.int32),
        _meta(tiles, dtype=torch.int32),
        _meta(1, dtype=torch.int32),
    )
    tiled = EXPERTS, n // TILE_ROWS, k // GROUP, TILE_ROWS
    zero = None if case.symmetric else _meta(*tiled, dtype=torch.int16)
    weight = Int4Matrix(_meta(*tiled, WORDS, dtype=torch.int16), _meta(*tiled), zero)
    dtype = torch.float32 if is_up and split > 1 else torch.bfloat16
    with compile_launches() as kernels:
        try:
            multiply_int4_experts(
                _meta(case.rows if is_up else slots, k),
                weight,
                order,
                case.height,
                _meta(slots, split, n, dtype=dtype),
                case.tile,
                None if is_up else _meta(slots, dtype=torch.float32),
                pdl=case.rows in DECODE_ROWS,
            )
        except OutOfResources:
            return None
    return read_resources(kernels[0])


def _meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Return a tensor that has a shape and no numbers."""
    return torch.empty(shape, dtype=dtype, device="meta")


COLUMNS = (
    "product",
    "rows",
    "height",
    "cols",
    "warps",
    "stages",
    "split",
    "zeros",
    "registers",
    "spilled",
    "shared",
    "at once",
    "launched",
    "per KiB",
)


def format_row(case: Int4Product, needs: KernelResources | None) -> str:
    """Return a line of the table."""
    tile = case.tile
    zeros = ("8" if case.symmetric else "own") + (" after" if tile.zero_after else "")
    cells = [case.name, case.rows, case.height, tile.cols, tile.warps, tile.stages, tile.split]
    cells += [zeros]
    if needs is None:
        return format_cells([*cells, "more than a GPU has"])
    per_kib = round(needs.loop / case.weight_kib) if needs.loop else "no loop"
    sizes = [needs.registers, needs.spilled_bytes, needs.shared_bytes, needs.programs]
    return format_cells([*cells, *sizes, round(case.programs), per_kib])


def format_cells(cells: Sequence[object]) -> str:
    """Return cells side by side."""
    return "".join(f"{cell:>10}" for cell in map(str, cells))


def main() -> int:
    """Compile all, print the table and write it. Return 1 if a kernel spills or does not fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--in-use", action="store_true", help="only the tilings that are shipped")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = list(dict.fromkeys(iter_in_use()))
    if not options.in_use:
        cases = list(dict.fromkeys([*cases, *iter_candidates()]))
    print(format_cells(COLUMNS))
    rows, failed = [], 0
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for case, needs in zip(cases, pool.map(compile_product, cases), strict=True):
            print(format_row(case, needs), flush=True)
            failed += needs is None or not needs.fits
            rows.append({"product": asdict(case), "needs": needs and asdict(needs)})
    print(f"{len(cases)} kernels, of which {failed} spill or do not fit")
    if options.out:
        result = {"environment": fingerprint(), "kernels": rows}
        options.out.write_text(json.dumps(result) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
