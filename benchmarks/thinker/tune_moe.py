"""Find the fastest Triton configurations of the fused MoE GEMMs for the thinker's experts.

    python -m benchmarks.thinker.tune_moe --tp 1 2 4 --out FILE             # bfloat16
    python -m benchmarks.thinker.tune_moe --tp 1 2 4 --fp8 --out FILE       # blocks of 128 x 128

One GPU tunes for any number of ranks, since only the width of a rank's experts differs. The fastest
configurations are written where `sglang_omni.engines.thinker.moe_configs` finds them: one file for
the up-projection (gate and up) and one for the down-projection. The two share BLOCK_SIZE_M because
they share one sorting of tokens. Kernels are compiled first, in as many processes as there are
cores. Then each GEMM is timed as a CUDA graph in which every launch uses other experts, so that
none of them is in the cache.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.thinker.shapes import SHAPE
from benchmarks.tools import cuda_graphs
from measurement.environment import fingerprint
from sglang_omni.engines.thinker.moe_configs import CONFIG_ROOT, find_version_folder
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK

TOKENS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096)
EXPERTS = int(SHAPE["num_experts"]) + 1
TOP_K = int(SHAPE["num_experts_per_tok"]) + 1
HIDDEN = int(SHAPE["hidden_size"])
LAUNCHES, REPLAYS = 6, 3
# The shared memory of one multiprocessor, less what the kernel itself needs.
SHARED_BYTES = 200 * 1024
# Triton compiles sizes that 16 divides separately; these sizes cover both, in every tile.
COMPILED_TOKENS = (1, 16, 24, 64, 512)

Config = dict[str, int]
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """The experts of one of `tp` ranks."""

    tp: int
    fp8: bool

    @property
    def width(self) -> int:
        """Return the intermediate columns of one expert on one rank."""
        return int(SHAPE["moe_intermediate_size"]) // self.tp


@dataclass(frozen=True)
class Experts:
    """The weights of one rank. Scales are None in bfloat16."""

    up: Tensor
    down: Tensor
    up_scale: Tensor | None
    down_scale: Tensor | None


def candidates(fp8: bool) -> list[Config]:
    """Return the configurations worth trying on a Hopper GPU."""
    ks = (64, 128) if fp8 else (64, 128, 256)
    space = product((16, 32, 64, 128), (32, 64, 128, 256), ks, (1, 16), (4, 8), (2, 3, 4, 5))
    return [config for values in space if is_promising(config := make_config(*values), fp8)]


def make_config(m: int, n: int, k: int, group: int, warps: int, stages: int) -> Config:
    """Make a configuration with SGLang's names."""
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M")
    return dict(
        zip((*names, "num_warps", "num_stages"), (m, n, k, group, warps, stages), strict=True)
    )


def is_promising(config: Config, fp8: bool) -> bool:
    """Return whether the tiling can be fast.

    Tiles of few rows wait for memory, tiles of many for arithmetic.
    """
    m, n, k = (config[f"BLOCK_SIZE_{axis}"] for axis in "MNK")
    warps, stages, group = config["num_warps"], config["num_stages"], config["GROUP_SIZE_M"]
    if (m + n) * k * (1 if fp8 else 2) * (stages - 1) > SHARED_BYTES:
        return False
    if m <= 32:
        return n <= 128 and k >= 128 and stages >= 3 and group == 1 and (warps == 4 or n == 128)
    return n >= 64 and k <= 128 and 3 <= stages <= 4 and (warps == 8 or m * n <= 64 * 128)


def suits_tokens(config: Config, tokens: int) -> bool:
    """Return whether a tile has about as many rows as an expert has tokens."""
    mean, m = tokens * TOP_K / EXPERTS, config["BLOCK_SIZE_M"]
    if mean < 4:
        return m <= 32
    return m <= 64 if mean < 16 else m >= 64


def random_experts(case: Case, device: torch.device) -> Experts:
    """Draw random weights of all experts of one rank."""
    dtype = torch.float8_e4m3fn if case.fp8 else torch.bfloat16
    shapes = (EXPERTS, 2 * case.width, HIDDEN), (EXPERTS, HIDDEN, case.width)
    up, down = (_random_weights(shape, dtype, device) for shape in shapes)
    if not case.fp8:
        return Experts(up, down, None, None)
    scales = [
        torch.full((e, -(-rows // BLOCK), -(-columns // BLOCK)), 1e-4, device=device)
        for e, rows, columns in shapes
    ]
    return Experts(up, down, *scales)


def _random_weights(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    weights = torch.empty(shape, dtype=dtype, device=device)
    for expert in weights:
        expert.copy_(torch.randn(expert.shape, device=device, dtype=torch.bfloat16))
    return weights


class ExpertGemm:
    """One of the two GEMMs for `tokens` tokens; routes differ from launch to launch."""

    def __init__(self, case: Case, experts: Experts, tokens: int, down: bool) -> None:
        self._case, self._down, self._tokens = case, down, tokens
        device = experts.up.device
        self._weights = experts.down if down else experts.up
        self._scale = experts.down_scale if down else experts.up_scale
        rows, columns = (tokens * TOP_K, case.width) if down else (tokens, HIDDEN)
        self._input = torch.randn(rows, columns, device=device, dtype=torch.bfloat16)
        shape = (tokens, TOP_K, HIDDEN) if down else (tokens * TOP_K, 2 * case.width)
        self._output = torch.empty(shape, device=device, dtype=torch.bfloat16)
        self._shares = torch.rand(tokens, TOP_K, device=device)
        self._ids = [random_routes(tokens, device) for _ in range(LAUNCHES)]
        self._sorted: dict[int, list[tuple[Tensor, ...]]] = {}

    def milliseconds(self, config: Config) -> float:
        """Return the time of one launch, without the sorting."""
        self._sort(config["BLOCK_SIZE_M"])
        self._launch(config, 0)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for index in range(LAUNCHES):
                self._launch(config, index)
        return cuda_graphs.mean_replay_ms(graph, REPLAYS) / LAUNCHES

    def compile(self, config: Config) -> None:
        """Launch once, which fills the compiler's cache."""
        self._sort(config["BLOCK_SIZE_M"])
        self._launch(config, 0)
        torch.cuda.synchronize()

    def _sort(self, block: int) -> None:
        from sglang.srt.layers.moe.moe_runner.triton_utils import moe_align_block_size

        if block not in self._sorted:
            self._sorted[block] = [moe_align_block_size(i, block, EXPERTS) for i in self._ids]

    def _launch(self, config: Config, index: int) -> None:
        import triton.language as tl
        from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe_triton_kernels import (
            invoke_fused_moe_kernel,
        )

        invoke_fused_moe_kernel(
            self._input,
            self._weights,
            None,
            self._output,
            None,
            self._scale,
            None,
            self._shares,
            self._ids[index],
            *self._sorted[config["BLOCK_SIZE_M"]][index],
            self._down,
            1 if self._down else TOP_K,
            config,
            compute_type=tl.bfloat16,
            use_fp8_w8a8=self._case.fp8,
            use_int8_w8a8=False,
            use_int8_w8a16=False,
            use_int4_w4a16=False,
            per_channel_quant=False,
            block_shape=[BLOCK, BLOCK] if self._case.fp8 else None,
            filter_expert=False,
        )


def random_routes(tokens: int, device: torch.device) -> Tensor:
    """Draw expert ids [tokens, top_k + 1]: distinct routed experts, and the shared one."""
    routed = torch.rand(tokens, EXPERTS - 1, device=device).topk(TOP_K - 1).indices
    shared = torch.full((tokens, 1), EXPERTS - 1, device=device)
    return torch.cat((routed, shared), dim=1).int()


def compile_all(case: Case, configs: Sequence[Config], workers: int) -> None:
    """Fill the compiler's cache.

    A kernel that cannot be compiled fails again, and is skipped, later.
    """
    parts = [list(configs[index::workers]) for index in range(workers)]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for future in [pool.submit(_compile_part, case, part) for part in parts]:
            future.result()


def _compile_part(case: Case, configs: Sequence[Config]) -> None:
    device = torch.device("cuda")
    dtype = torch.float8_e4m3fn if case.fp8 else torch.bfloat16
    experts = share_one_expert(case, dtype, device)
    gemms = {
        tokens: [ExpertGemm(case, experts, tokens, down) for down in (False, True)]
        for tokens in COMPILED_TOKENS
    }
    for config, tokens in product(configs, COMPILED_TOKENS):
        if not suits_tokens(config, tokens):
            continue
        for gemm in gemms[tokens]:
            try:
                gemm.compile(config)
            except Exception:
                # Too large for the GPU: `find_fastest` meets the same error, and counts it.
                torch.cuda.synchronize()


def share_one_expert(case: Case, dtype: torch.dtype, device: torch.device) -> Experts:
    """Return weights of one expert that stand for all: strides between experts are zero."""

    def expanded_ones(rows: int, columns: int, dtype_of_values: torch.dtype) -> Tensor:
        return (
            torch.ones(1, rows, columns, device=device).to(dtype_of_values).expand(EXPERTS, -1, -1)
        )

    up, down = (
        expanded_ones(2 * case.width, HIDDEN, dtype),
        expanded_ones(HIDDEN, case.width, dtype),
    )
    if not case.fp8:
        return Experts(up, down, None, None)
    scales = [
        expanded_ones(-(-w.shape[1] // BLOCK), -(-w.shape[2] // BLOCK), torch.float32)
        for w in (up, down)
    ]
    return Experts(up, down, *scales)


def find_fastest(case: Case, experts: Experts, configs: Sequence[Config], tokens: int) -> Row:
    """Return the fastest pair of configurations with one BLOCK_SIZE_M, and their times."""
    fastest: dict[tuple[bool, int], tuple[float, Config]] = {}
    failed = 0
    for down in (False, True):
        gemm = ExpertGemm(case, experts, tokens, down)
        for config in configs:
            if not suits_tokens(config, tokens):
                continue
            try:
                launch_ms = gemm.milliseconds(config)
            except Exception:
                failed += 1
                torch.cuda.synchronize()
                continue
            key = down, config["BLOCK_SIZE_M"]
            fastest[key] = min(
                fastest.get(key, (launch_ms, config)), (launch_ms, config), key=lambda x: x[0]
            )
    blocks = [m for down, m in fastest if not down and (True, m) in fastest]
    m = min(blocks, key=lambda m: fastest[False, m][0] + fastest[True, m][0])
    (up_ms, up), (down_ms, down_config) = fastest[False, m], fastest[True, m]
    return {"tokens": tokens, "up_ms": up_ms, "down_ms": down_ms, "failed": failed} | {
        "up": up,
        "down": down_config,
    }


def time_default_ms(case: Case, experts: Experts, tokens: int) -> float:
    """Return the time of both GEMMs with the configuration that SGLang uses without a file."""
    if case.fp8:
        config = make_config(64, BLOCK, BLOCK, 32, 4, 3)
    elif tokens <= EXPERTS:
        config = make_config(16, 32, 64, 1, 4, 3)
    else:
        config = make_config(64, 64, 32, 8, 4, 3)
    return sum(
        ExpertGemm(case, experts, tokens, down).milliseconds(config) for down in (False, True)
    )


def tune(case: Case, configs: Sequence[Config], tokens: Sequence[int]) -> Iterator[Row]:
    """Yield the fastest configurations for every number of tokens."""
    experts = random_experts(case, torch.device("cuda"))
    for count in tokens:
        row = find_fastest(case, experts, configs, count)
        row["default_ms"] = time_default_ms(case, experts, count)
        print_row(case, row)
        yield row


def print_row(case: Case, row: Row) -> None:
    """Print one row as a line."""
    total_ms = row["up_ms"] + row["down_ms"]
    precision = "fp8" if case.fp8 else "bf16"
    print(
        f"tp {case.tp} {precision} {row['tokens']:5} tokens  {total_ms * 1e3:8.1f} us  "
        f"default {row['default_ms'] * 1e3:8.1f} us  "
        f"up {list(row['up'].values())}  down {list(row['down'].values())}",
        flush=True,
    )


def write_configs(case: Case, rows: Sequence[Row], root: Path) -> None:
    """Write the two files of a case as SGLang reads them."""
    from sglang.srt.layers.moe.moe_runner.triton_utils import get_config_file_name

    folder = find_version_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    dtype, block = ("fp8_w8a8", [BLOCK, BLOCK]) if case.fp8 else (None, None)
    for part in ("up", "down"):
        name = get_config_file_name(EXPERTS, case.width, dtype, block, down_moe=part == "down")
        table = {str(row["tokens"]): row[part] for row in rows}
        (folder / name).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Tune every case, write the files and the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tp", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--fp8", action="store_true")
    parser.add_argument("--tokens", type=int, nargs="+", default=list(TOKENS))
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument(
        "--root", type=Path, default=CONFIG_ROOT, help="folder in which SGLang looks"
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write the results")
    options = parser.parse_args()
    configs, started_at = candidates(options.fp8), time.perf_counter()
    print(f"{len(configs)} configurations", flush=True)
    compile_all(Case(1, options.fp8), configs, options.workers)
    print(f"compiled after {time.perf_counter() - started_at:.0f} s", flush=True)
    result: Row = {"environment": fingerprint(), "cases": []}
    for tp in options.tp:
        case = Case(tp, options.fp8)
        rows = list(tune(case, configs, options.tokens))
        write_configs(case, rows, options.root)
        result["cases"].append({**asdict(case), "rows": rows})
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"tp {tp} after {time.perf_counter() - started_at:.0f} s", flush=True)


if __name__ == "__main__":
    main()
