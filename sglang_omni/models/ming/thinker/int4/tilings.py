"""Tilings of the four-bit expert products, by number of rows and GPU.

`benchmarks.thinker.tune_int4` measures them and writes a file for its GPU into `tilings`. On GPUs
without a file the table here is used, whose tilings fit every Hopper GPU.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch

from sglang_omni.models.ming.thinker.int4.gemm_triton import Int4GemmTile

FOLDER = Path(__file__).parent / "tilings"


@dataclass(frozen=True)
class Int4Tiling:
    """Tilings of the two products of a layer's experts.

    `height` is the number of rows of a tile, which the products share because they share one
    grouping of the rows.
    """

    height: int
    up: Int4GemmTile
    down: Int4GemmTile


Tilings = Mapping[int, Int4Tiling]
"""By maximum number of rows; the last one serves any more."""

DEFAULT_TILINGS: Tilings = {
    1: Int4Tiling(
        8,
        Int4GemmTile(64, 2, 6, split=2, zero_after=True),
        Int4GemmTile(64, 2, 6, zero_after=True),
    ),
    64: Int4Tiling(
        8, Int4GemmTile(128, 2, 4, zero_after=True), Int4GemmTile(128, 2, 4, zero_after=True)
    ),
    256: Int4Tiling(16, Int4GemmTile(64, 4, 4), Int4GemmTile(64, 4, 4)),
    1024: Int4Tiling(64, Int4GemmTile(64, 4, 3), Int4GemmTile(64, 4, 3)),
    4096: Int4Tiling(128, Int4GemmTile(128, 8, 3), Int4GemmTile(128, 8, 3)),
}


def select_int4_tiling(tilings: Tilings, rows: int) -> Int4Tiling:
    """Return the tiling for a number of rows."""
    return tilings[min((limit for limit in tilings if rows <= limit), default=max(tilings))]


@cache
def load_int4_tilings(gpu_name: str, folder: Path = FOLDER) -> Tilings:
    """Return the tilings measured on GPUs of this name, or else `DEFAULT_TILINGS`."""
    path = folder / format_tiling_file(gpu_name)
    if not path.exists():
        return DEFAULT_TILINGS
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {int(limit): _parse_tiling(tiling) for limit, tiling in rows.items()}


def select_gpu_tiling(device: torch.device, rows: int) -> Int4Tiling:
    """Return the tiling for a number of rows on a GPU."""
    return select_int4_tiling(load_int4_tilings(_read_gpu_name(device)), rows)


def format_tiling_file(gpu_name: str) -> str:
    """Return the name of the file of tilings measured on GPUs of this name."""
    return f"{gpu_name.replace(' ', '_')}.json"


def dump_int4_tilings(tilings: Tilings) -> str:
    """Return the text of a file of tilings."""
    return json.dumps({limit: asdict(tiling) for limit, tiling in tilings.items()}, indent=1) + "\n"


def _parse_tiling(tiling: Mapping[str, object]) -> Int4Tiling:
    height, up, down = (tiling[key] for key in ("height", "up", "down"))
    assert isinstance(height, int)
    assert isinstance(up, dict)
    assert isinstance(down, dict)
    return Int4Tiling(height, Int4GemmTile(**up), Int4GemmTile(**down))


@cache
def _read_gpu_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device)
