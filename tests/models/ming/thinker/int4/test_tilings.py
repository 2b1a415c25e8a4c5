"""Which tiling serves how many rows, and what a file of them holds."""

from pathlib import Path

import pytest
import torch

from benchmarks.thinker.int4_kernels import DECODE_ROWS, PREFILL_ROWS
from sglang_omni.models.ming.thinker.int4.experts import fit_split
from sglang_omni.models.ming.thinker.int4.gemm_triton import Int4GemmTile
from sglang_omni.models.ming.thinker.int4.tilings import (
    DEFAULT_TILINGS,
    FOLDER,
    Int4Tiling,
    dump_int4_tilings,
    format_tiling_file,
    load_int4_tilings,
    select_int4_tiling,
)
from sglang_omni.models.ming.thinker.int4.weights import Int4Matrix


@pytest.mark.parametrize(
    ("rows", "limit"), [(1, 1), (2, 8), (33, 64), (64, 64), (65, 256), (9000, 4096)]
)
def test_the_next_limit_serves_and_the_last_one_any_more(rows: int, limit: int) -> None:
    assert select_int4_tiling(DEFAULT_TILINGS, rows) == DEFAULT_TILINGS[limit]


@pytest.mark.parametrize("gpu", ["NVIDIA H100 80GB HBM3", "NVIDIA H200"])
def test_measured_tilings_serve_every_number_of_rows(gpu: str) -> None:
    assert (FOLDER / format_tiling_file(gpu)).exists()
    assert list(load_int4_tilings(gpu)) == [*DECODE_ROWS, *PREFILL_ROWS]


def test_a_gpu_without_a_file_takes_the_tilings_measured_on_the_h100() -> None:
    assert load_int4_tilings("NVIDIA GH200") == load_int4_tilings("NVIDIA H100 80GB HBM3")
    assert load_int4_tilings("NVIDIA H200") != DEFAULT_TILINGS


def test_a_file_of_a_gpu_comes_back_and_others_take_the_default(tmp_path: Path) -> None:
    tilings = {
        8: Int4Tiling(8, Int4GemmTile(128, 8, 6, 2), Int4GemmTile(64, 4, 3)),
        64: Int4Tiling(16, Int4GemmTile(64, 4, 5), Int4GemmTile(128, 4, 3)),
    }
    name = "NVIDIA H100 80GB HBM3"
    path = tmp_path / format_tiling_file(name)
    assert path.name == "NVIDIA_H100_80GB_HBM3.json"
    path.write_text(dump_int4_tilings(tilings), encoding="utf-8")
    assert load_int4_tilings(name, tmp_path) == tilings
    assert load_int4_tilings("NVIDIA H200", tmp_path) is DEFAULT_TILINGS


@pytest.mark.parametrize(("groups", "split"), [(1, 1), (2, 2), (3, 1), (8, 4)])
def test_programs_share_the_groups_evenly(groups: int, split: int) -> None:
    packed = torch.empty(2, 1, groups, 64, 32, dtype=torch.int16)
    tile = fit_split(Int4GemmTile(128, 8, 3, split=4), Int4Matrix(packed, packed[..., 0]))
    assert tile == Int4GemmTile(128, 8, 3, split=split)
