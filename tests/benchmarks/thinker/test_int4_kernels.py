"""The four-bit tilings compile without a GPU, fit a multiprocessor and do not spill."""

from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.thinker import tune_int4
from benchmarks.thinker.int4_kernels import (
    DECODE_ROWS,
    PREFILL_ROWS,
    SIZES,
    Int4Product,
    compile_product,
    iter_candidates,
    iter_in_use,
    list_heights,
    list_tiles,
)
from benchmarks.tools.hopper import KernelResources, find_longest_loop
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.thinker.int4.gemm_triton import Int4GemmTile
from sglang_omni.models.ming.thinker.int4.layout import GROUP, TILE_ROWS
from sglang_omni.models.ming.thinker.int4.tilings import (
    DEFAULT_TILINGS,
    Int4Tiling,
    format_tiling_file,
    load_int4_tilings,
    select_int4_tiling,
)

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
IN_USE = list(dict.fromkeys(iter_in_use()))


@pytest.mark.parametrize("case", IN_USE, ids=str)
def test_a_tiling_in_use_compiles_and_does_not_spill(case: Int4Product) -> None:
    needs = compile_product(case)
    assert needs is not None
    assert needs.fits, needs
    # The loop copies weights to shared memory 16 bytes at a time.
    assert needs.wide_loads > 0


@pytest.mark.long
@pytest.mark.parametrize("case", list(dict.fromkeys(iter_candidates())), ids=str)
def test_a_candidate_compiles_and_does_not_spill(case: Int4Product) -> None:
    needs = compile_product(case)
    assert needs is not None
    assert needs.fits, needs


def test_a_kernel_that_needs_too_much_does_not_fit() -> None:
    case = Int4Product("up", 256, 128, Int4GemmTile(128, 4, 3))
    needs = compile_product(case)
    assert needs is not None
    assert needs.spilled_bytes > 0
    assert not needs.fits


@pytest.mark.parametrize("rows", [*DECODE_ROWS, *PREFILL_ROWS])
def test_candidates_divide_the_weights_of_both_products(rows: int) -> None:
    for height in list_heights(rows):
        tiles = list_tiles(rows, height)
        assert len(tiles) >= 6
        for tile in tiles:
            for n, k in SIZES.values():
                assert n % tile.cols == 0
                assert tile.cols % TILE_ROWS == 0
                assert (k // GROUP) % tile.split == 0


def test_a_multiprocessor_runs_as_many_programs_as_its_scarcest_part_allows() -> None:
    def programs(registers: int, shared: int, warps: int) -> int:
        return KernelResources(registers, 0, shared, warps, 0, 0).programs

    assert programs(64, 24 << 10, 4) == 8  # 65,536 registers
    assert programs(32, 24 << 10, 4) == 9  # 228 KiB
    assert programs(32, 1 << 10, 8) == 8  # 64 warps
    assert programs(255, 228 << 10, 4) == 0


def test_the_longest_loop_is_found() -> None:
    assembly = """
.L_x_0:
        /*0010*/                   LDGSTS.E.BYPASS.128 [R7], desc[UR12][R4.64] ;
        /*0020*/              @P1 BRA `(.L_x_0) ;
        /*0030*/                   IADD3 R1, R1, R2, RZ ;
        /*0040*/              @P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0050*/                   BRA `(.L_x_1);
.L_x_2:
"""
    loop = find_longest_loop(assembly)
    assert [line.split()[0] for line in loop] == ["LDGSTS.E.BYPASS.128", "@P1"]


def test_the_document_says_what_the_kernels_need() -> None:
    result = read_json(RESULTS / "int4_kernels.json")
    assert all(row["needs"]["spilled_bytes"] == 0 for row in result["kernels"])
    found: dict[tuple[int, bool], list[int]] = {}
    for row in result["kernels"]:
        product, needs = row["product"], row["needs"]
        tile = Int4GemmTile(**product["tile"])
        if product["height"] == 8 and tile.cols <= 128 and product["symmetric"] and needs["loop"]:
            case = Int4Product("up", 1, 8, tile)
            per_kib = round(needs["loop"] / case.weight_kib)
            found.setdefault((tile.warps, tile.zero_after), []).append(per_kib)
    text = (RESULTS.parents[1] / "docs" / "quantization.md").read_text(encoding="utf-8")
    for key in ((4, False), (2, False), (2, True)):
        assert f"{min(found[key])} to {max(found[key])}" in text


class Rows:
    """A workload whose times follow from the tiling alone."""

    def __init__(self, rows: int, too_large: Int4GemmTile | None = None) -> None:
        self.rows, self._too_large = rows, too_large

    def fits(self, tiling: Int4Tiling) -> bool:
        return self._too_large not in (tiling.up, tiling.down)

    def run(self, tiling: Int4Tiling, index: int) -> None:
        raise AssertionError("only timed")


@pytest.mark.parametrize("rows", [1, 64, 4096])
def test_the_search_finds_the_fastest_of_both_products(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    height = list_heights(rows)[-1]
    up, down, too_large = list_tiles(rows, height)[2:5]

    def time_layer_us(call: Any) -> float:
        (tiling,) = call.args
        fastest = Int4Tiling(height, up, down)
        parts = ("height", "up", "down")
        return 10.0 + sum(getattr(tiling, part) != getattr(fastest, part) for part in parts)

    monkeypatch.setattr(tune_int4, "time_layer_us", time_layer_us)
    times = tune_int4.tune(cast(tune_int4.Workload, Rows(rows, too_large)))
    assert next(iter(times.items())) == (Int4Tiling(height, up, down), 10.0)
    assert list(times.values()) == sorted(times.values())
    assert {tiling.height for tiling in times} == set(list_heights(rows))
    tried = {tile for tiling in times for tile in (tiling.up, tiling.down)}
    assert tried == {tile for height in list_heights(rows) for tile in list_tiles(rows, height)} - {
        too_large
    }


def test_measured_tilings_are_installed_beside_the_defaults(tmp_path: Path) -> None:
    measured = {8: Int4Tiling(16, Int4GemmTile(128, 2, 3), Int4GemmTile(64, 2, 4))}
    path = tune_int4.install_tilings(measured, "NVIDIA H100 80GB HBM3", tmp_path)
    assert path.name == format_tiling_file("NVIDIA H100 80GB HBM3")
    load_int4_tilings.cache_clear()
    tilings = load_int4_tilings("NVIDIA H100 80GB HBM3", tmp_path)
    assert select_int4_tiling(tilings, 2) == measured[8]
    assert select_int4_tiling(tilings, 1) == DEFAULT_TILINGS[1]
    assert select_int4_tiling(tilings, 9) == DEFAULT_TILINGS[16]
    assert select_int4_tiling(tilings, 10_000) == DEFAULT_TILINGS[4096]
