"""Measure how fast the thinker decodes at the released shape, beside SGLang's own BailingMoeV2.

    python -m benchmarks.thinker.decoding --fp8 --clients 1,8,16,32,64 --out FILE
    python -m benchmarks.thinker.decoding --int4 --clients 1,16,32,64 --out FILE
    python -m benchmarks.thinker.decoding --tp 2 --systems plug-in --out FILE
    python -m benchmarks.thinker.decoding --small --device cpu --clients 1,4 --tokens 16 --out FILE

The weights are random, of the real shape, and drawn on the device
(`benchmarks.synthetic.random_models`). Routing is even; each row has the number of experts that a
decode batch uses per layer. Every system runs in a process of its own with our server's options,
one after the other on one machine. Clients start together; `tokens_per_s` counts the tokens between
the time when the last client starts to decode and the time when the first ends. TTFT is that of
prompts that all arrive at once. `weights_gb` are those that a step reads, and
`share_of_weight_traffic` is the least time that this takes, in parts of the step's. `--profile DIR`
leaves traces for `benchmarks.thinker.profile`.

The plug-in's head is in FP8 in quantized weights, as `sgl-omni quantize` writes it, and in bfloat16
with `--head bf16`; SGLang's is always in bfloat16. In four bits, SGLang runs its Triton kernels
(`moe_wna16`), which have experts in four bits and the rest in bfloat16. In FP8 it runs twice where
DeepGEMM is installed, with it and without.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.synthetic.random_models import names
from benchmarks.synthetic.random_models.census import FILE, ROWS, count_experts_used
from benchmarks.thinker.load import Round, run_rounds
from benchmarks.thinker.profile import write_trace
from benchmarks.thinker.shapes import (
    SHAPE,
    SMALL,
    STOCK_INT4_METHOD,
    add_weights_options,
    write_shape_checkpoint,
)
from benchmarks.thinker.weight_traffic import shortest_step_ms, step_bytes
from measurement.environment import deep_gemm_version, fingerprint, has_deep_gemm
from sglang_omni.engines.runtime.gpus import list_visible_gpus
from sglang_omni.engines.runtime.ports import find_rendezvous_port
from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment, build_server_args
from sglang_omni.engines.thinker.moe_configs import build_moe_environment
from sglang_omni.models.base import HeadForm
from sglang_omni.models.json_file import read_json
from sglang_omni.models.registry import default_family

STOCK_ALONE = "stock without DeepGEMM"
SYSTEMS = ("plug-in", "stock", STOCK_ALONE)
# SGLang's switch for DeepGEMM.
DEEP_GEMM = "SGLANG_ENABLE_JIT_DEEPGEMM"
# For the plug-in's model alone, and without influence on speed.
PLUG_IN_ONLY = ("json_model_override_args",)
MEMORY_SHARE = 0.92

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One system at one precision.

    `head` is the form of the plug-in's head in quantized weights. `server_args` are SGLang's, by
    name, and override ours. `profile` is a folder for traces. `deep_gemm` is its version, or why
    SGLang does not use it.
    """

    system: str
    shape: Mapping[str, Any]
    weights: str
    deep_gemm: str
    tp: int
    device: str
    clients: tuple[int, ...]
    prompt: int
    tokens: int
    rounds: int
    server_args: Mapping[str, Any] = field(default_factory=dict)
    profile: str | None = None
    head: HeadForm = HeadForm.FP8

    @property
    def model(self) -> str:
        """Return which model class runs."""
        return "plug-in" if self.system == "plug-in" else "stock"

    @property
    def census_rows(self) -> int:
        """Return the batch size at which used experts are counted: larger than any graph's."""
        return max(self.clients) + 1


def build_settings(job: Job, folder: Path) -> ThinkerSettings:
    """Return the settings of our server for this job, with room for exactly the largest load."""
    cuda = job.device == "cuda"
    graphs = {"cuda_graph_max_bs_decode": max(job.clients)} if cuda else {}
    return ThinkerSettings(
        folder,
        device=job.device,
        dtype="bfloat16",
        tp_size=job.tp,
        max_total_tokens=(job.prompt + job.tokens + 64) * (job.census_rows + 1),
        max_running_requests=job.census_rows,
        mem_fraction_static=MEMORY_SHARE if cuda else None,
        server_args=tuple({"skip_tokenizer_init": True, **graphs, **job.server_args}.items()),
    )


def measure(job: Job) -> Iterator[Row]:
    """Yield the rows of one system.

    It sets this process's environment, so run it in its own process.
    """
    with tempfile.TemporaryDirectory() as temp_dir:
        folder = Path(temp_dir)
        write_shape_checkpoint(folder, job.model, dict(job.shape), job.weights, job.head)
        settings = build_settings(job, folder)
        os.environ |= build_environment(settings, threads=max(1, (os.cpu_count() or 1) // job.tp))
        os.environ |= {
            "SGLANG_EXTERNAL_MODEL_PACKAGE": names.PACKAGE,
            ROWS: str(job.census_rows),
            FILE: str(folder / "census.json"),
        }
        if job.system == STOCK_ALONE:
            os.environ[DEEP_GEMM] = "false"
        arguments = build_server_args(
            settings, find_rendezvous_port(), default_family().sglang_args()
        )
        if job.system == "plug-in" and job.device == "cuda":
            config = read_json(folder / "config.json")
            os.environ |= build_moe_environment(config, list_visible_gpus()[0].name, job.tp)
        if job.model == "stock":
            arguments = {k: v for k, v in arguments.items() if k not in PLUG_IN_ONLY}
            if job.weights == "int4":
                arguments["quantization"] = STOCK_INT4_METHOD
        yield from _measure_engine(job, arguments, folder / "census.json")


def _measure_engine(job: Job, arguments: dict[str, Any], census: Path) -> Iterator[Row]:
    from sglang import Engine

    started_at = time.perf_counter()
    engine = Engine(**arguments)
    about = {"system": job.system, "start_s": round(time.perf_counter() - started_at, 1)}
    print(f"{job.system}: ready in {about['start_s']} s", flush=True)
    try:
        vocabulary = int(job.shape["vocab_size"])
        rounds = [Round(count, job.prompt, job.tokens) for count in job.clients]
        # Long enough for a decode batch of all requests.
        census_round = Round(job.census_rows, 8, 32)
        # Compile each size of prefill: as many prompts at once as in the measurement.
        warm_up_rounds = (Round(count, job.prompt, 2) for count in job.clients)
        run_rounds(engine, [census_round, *warm_up_rounds], vocabulary)
        layers = json.loads(census.read_text(encoding="utf-8"))
        for number in range(job.rounds):
            for row in run_rounds(engine, rounds, vocabulary):
                experts_used = count_experts_used(
                    layers, row["clients"], int(job.shape["num_experts"])
                )
                traffic = describe_traffic(job, row["tpot_ms"], experts_used)
                yield {
                    **about,
                    "round": number,
                    **row,
                    **traffic,
                    "experts_touched": experts_used,
                }
        for count in job.clients if job.profile else ():
            path = Path(job.profile or "") / f"{job.system}-{count}.trace.json.gz"
            write_trace(engine, count, job.prompt, vocabulary, path)
    finally:
        engine.shutdown()


def describe_traffic(job: Job, step_ms: float, experts_used: list[int]) -> Row:
    """Return the weights that a step reads, and the least time for that in parts of the step's."""
    num_bytes = step_bytes(job.model, job.shape, job.weights, experts_used, job.head)
    gpu_name = list_visible_gpus()[0].name if job.device == "cuda" else "none"
    floor_ms = shortest_step_ms(gpu_name, num_bytes, job.tp)
    share = None if floor_ms is None else round(floor_ms / step_ms, 3)
    return {"weights_gb": round(num_bytes / 1e9, 2), "share_of_weight_traffic": share}


def run_job(job: Job) -> tuple[list[Row], str | None]:
    """Measure in this process and print each row.

    Returns all rows that were measured, and why there are no more if it failed.
    """
    rows = []
    try:
        for row in measure(job):
            print_row(row)
            rows.append(row)
    except Exception as error:
        return rows, describe_error(error)
    return rows, None


def describe_error(error: Exception) -> str:
    """Return the kind of an error and the beginning of its message."""
    return f"{type(error).__name__}: {error}"[:300]


def print_row(row: Row) -> None:
    """Print one row as a line."""
    experts, share = row["experts_touched"], row["share_of_weight_traffic"]
    print(
        f"{row['system']:22} {row['clients']:3} clients  {row['tokens_per_s']:8.1f} tok/s  "
        f"TPOT {row['tpot_ms']:.2f} ms  TTFT p50/p95 {row['ttft_ms']['p50']:.0f}/"
        f"{row['ttft_ms']['p95']:.0f} ms  experts touched {min(experts)} to {max(experts)}  "
        f"weights {row['weights_gb']:.2f} GB a step"
        + ("" if share is None else f", {share:.0%} of the time is their traffic"),
        flush=True,
    )


def compare_systems(rows: list[Row], stock: str = "stock") -> Row:
    """Return the plug-in's best tokens per second in percent of stock's, by number of clients."""
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        key = row["system"], row["clients"]
        best[key] = max(best.get(key, 0.0), row["tokens_per_s"])
    return {
        str(clients): round(100 * best["plug-in", clients] / best[stock, clients], 1)
        for system, clients in best
        if system == stock and ("plug-in", clients) in best
    }


def list_systems(weights: str, deep_gemm: bool) -> list[str]:
    """Return the systems to measure: SGLang's without DeepGEMM only if there is a difference."""
    return [
        system for system in SYSTEMS if system != STOCK_ALONE or (deep_gemm and weights == "fp8")
    ]


def parse_counts(text: str) -> tuple[int, ...]:
    """Parse a list such as 1,16,64."""
    return tuple(int(number) for number in text.split(","))


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, help="not all of them")
    parser.add_argument("--tp", type=int, default=1)
    add_weights_options(parser)
    parser.add_argument("--clients", type=parse_counts, default=(1, 8, 16, 32, 64))
    parser.add_argument("--prompt", type=int, default=128, help="tokens of each prompt")
    parser.add_argument("--tokens", type=int, default=256, help="tokens of each answer")
    parser.add_argument("--rounds", type=int, default=2, help="measure everything so often")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--small", action="store_true", help="a small shape, to see that it runs")
    parser.add_argument("--layers", type=int, help="fewer layers, for a quick look")
    parser.add_argument("--server-args", type=json.loads, default={}, help="JSON, for all systems")
    parser.add_argument("--plug-in-args", type=json.loads, default={}, help="JSON, ours alone")
    parser.add_argument("--profile", type=Path, help="a folder for traces of decode steps")
    parser.add_argument("--profiled", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    return parser.parse_args()


def build_job(system: str, options: argparse.Namespace) -> Job:
    """Build the job of one system from the command line."""
    shape = SMALL if options.small else SHAPE
    if options.layers:
        shape = shape | {"num_hidden_layers": options.layers}
    extra = options.plug_in_args if system == "plug-in" else {}
    is_off = os.environ.get(DEEP_GEMM, "true").lower() in ("0", "false", "no")
    return Job(
        system=system,
        shape=shape,
        weights=options.weights,
        deep_gemm="off" if system == STOCK_ALONE or is_off else deep_gemm_version(),
        tp=options.tp,
        device=options.device,
        clients=options.clients,
        prompt=options.prompt,
        tokens=options.tokens,
        rounds=options.rounds,
        profile=str(options.profile) if options.profile and system in options.profiled else None,
        server_args={**options.server_args, **extra},
        head=options.head,
    )


def main() -> int:
    """Measure every system, print and write after each. Return 1 if one of them could not run."""
    options = parse_arguments()
    environment = {**fingerprint(), "deep_gemm": deep_gemm_version()}
    result: Row = {"environment": environment, "command": sys.argv[1:], "jobs": [], "rows": []}
    print(json.dumps(result["environment"]))
    failed = 0
    for system in options.systems or list_systems(options.weights, has_deep_gemm()):
        job = build_job(system, options)
        result["jobs"].append(asdict(job))
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                rows, reason = pool.submit(run_job, job).result()
        except Exception as error:
            rows, reason = [], describe_error(error)
        result["rows"] += rows
        if reason is not None:
            failed += 1
            result.setdefault("failed", {})[system] = reason
            print(f"{system} failed: {reason}", flush=True)
        result["plug_in_over_stock_percent"] = compare_systems(result["rows"])
        result["plug_in_over_stock_without_deep_gemm_percent"] = compare_systems(
            result["rows"], STOCK_ALONE
        )
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name in ("stock", "stock_without_deep_gemm"):
        print(f"plug-in over {name}: {json.dumps(result[f'plug_in_over_{name}_percent'])} percent")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
