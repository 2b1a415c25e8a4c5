"""Tilings of the four-bit expert products, by number of rows and GPU.

`benchmarks.thinker.tune_int4` measures them and writes a file for its GPU into `tilings`. GPUs
without a file take the tilings of the H100, which fit every Hopper GPU.
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


def select_int4_tiling(tilings: Tilings, rows: int) -> Int4Tiling:
    """Return the tiling for a number of rows."""
    return tilings[min((limit for limit in tilings if rows <= limit), default=max(tilings))]


@cache
def load_int4_tilings(gpu_name: str, folder: Path = FOLDER) -> Tilings:
    """Return the tilings measured on GPUs of this name, or else `DEFAULT_TILINGS`."""
    path = folder / format_tiling_file(gpu_name)
    return _read_tilings(path) if path.exists() else DEFAULT_TILINGS


def select_gpu_tiling(device: torch.device, rows: int) -> Int4Tiling:
    """Return the tiling for a number of rows on a GPU."""
    return select_int4_tiling(load_int4_tilings(_read_gpu_name(device)), rows)


def format_tiling_file(gpu_name: str) -> str:
    """Return the name of the file of tilings measured on GPUs of this name."""
    return f"{gpu_name.replace(' ', '_')}.json"


def dump_int4_tilings(tilings: Tilings) -> str:
    """Return the text of a file of tilings."""
    return json.dumps({limit: asdict(tiling) for limit, tiling in tilings.items()}, indent=1) + "\n"


def _read_tilings(path: Path) -> Tilings:
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {int(limit): _parse_tiling(tiling) for limit, tiling in rows.items()}


def _parse_tiling(tiling: Mapping[str, object]) -> Int4Tiling:
    height, up, down = (tiling[key] for key in ("height", "up", "down"))
    assert isinstance(height, int)
    assert isinstance(up, dict)
    assert isinstance(down, dict)
    return Int4Tiling(height, Int4GemmTile(**up), Int4GemmTile(**down))


@cache
def _read_gpu_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device)


DEFAULT_TILINGS: Tilings = _read_tilings(FOLDER / format_tiling_file("NVIDIA H100 80GB HBM3"))
"""For GPUs without a file. All Hopper GPUs have the H100's multiprocessors."""
