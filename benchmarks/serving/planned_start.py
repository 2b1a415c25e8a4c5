"""Start a server as users do, measure its start, load it, and keep what it took.

    python -m benchmarks.serving.planned_start --model-path DIR --out FILE -- --placement auto

What comes after `--` are options of `sgl-omni serve`. The JSON has the plan and the phases of every
engine's start as the server tells them, the seconds until `/ready`, tokens of KV cache and memory
of the server's processes and the GPU before and after a load of every kind of chat, and the load's
figures. It also says whether Python has SGLang's byte code: compiling it again doubles the time
that processes import.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.client.chat import ChatQuery, Kind
from benchmarks.client.load import Load, run_load
from benchmarks.serving.chat_summary import summarise_chats
from benchmarks.serving.ready import wait_ready
from benchmarks.serving.speech import UNLIMITED_S
from measurement.environment import fingerprint
from measurement.openai_api import served_model
from measurement.process_memory import measure_tree_bytes
from sglang_omni.engines.runtime.ports import find_rendezvous_port

Row = dict[str, Any]
KINDS: tuple[Kind, ...] = ("text", "image", "speech")
COUNTERS = ("kv_tokens_capacity", "gpu_peak_bytes")
ACCESS = " sglang_omni.access "
"""In lines about requests, which are the load's own."""
ENDS_WITHIN_S = 90.0
"""A server gives its requests 30 s, and then ends its engines."""
MEMORY = ("nvidia-smi", "--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits")


def measure(arguments: argparse.Namespace) -> Row:
    """Start the server, load it with every kind of chat, and end it."""
    port = find_rendezvous_port()  # The port stays reserved until the server starts.
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "sglang_omni", "serve", "--version", "v1"]
    command += ["--model-path", str(arguments.model_path), "--port", str(port), *arguments.options]
    with tempfile.TemporaryDirectory() as state, tempfile.TemporaryFile("w+") as said:
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdout=said, stderr=said, env={**os.environ, "XDG_STATE_HOME": state}
        )
        try:
            wait_ready(url, process, arguments.timeout)
            ready_s = time.monotonic() - started
            engines = httpx.get(f"{url}/health").json()["engines"]
            before = read_usage(url, process.pid)
            rows = list(run_kinds(url, arguments))
            after = read_usage(url, process.pid)
        finally:
            end(process)
            said.seek(0)
            lines = said.read().splitlines()
            print("\n".join(lines[-60:]), flush=True)
        held = [line for line in read_logs(Path(state)) if "a rank holds" in line]
    return {
        "ready_s": round(ready_s, 2),
        "phases": {name: engine["start_phases"] for name, engine in engines.items()},
        "said": [line for line in lines if ACCESS not in line],
        "byte_code": has_byte_code("sglang"),
        "held": held,
        "before_load": before,
        "after_load": after,
        "loads": rows,
    }


def end(process: "subprocess.Popen[bytes]", within_s: float = ENDS_WITHIN_S) -> None:
    """End the server in its own time; its engines end with one that has to be killed."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        print(f"the server has not ended after {within_s:.0f} s: it is killed", flush=True)
        process.kill()
        process.wait()


def run_kinds(url: str, arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each kind of chat."""
    model, number = served_model(url), 0
    for kind in KINDS:
        query = ChatQuery(
            url, model, kind, max_tokens=arguments.max_tokens, timeout_s=arguments.timeout
        )
        requests = 2 * arguments.clients
        load = Load(
            "closed",
            query,
            arguments.clients,
            UNLIMITED_S,
            requests=requests,
            first_number=number,
        )
        number += requests
        row = {"chat": kind, "clients": arguments.clients}
        row |= summarise_chats(run_load(load, min(arguments.processes, arguments.clients)))
        print(f"{kind}: failed {row['failed']} of {row['requests']}", flush=True)
        yield row


def has_byte_code(package: str) -> bool:
    """Return whether the compiled form of a package is stored beside it, or where Python looks."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(cache_from_source(spec.origin)).exists()


def read_usage(url: str, pid: int) -> Row:
    """Return what the server holds: counters, MiB of GPUs, and bytes of its processes."""
    return {
        "counters": read_counters(url),
        "memory_mib": read_memory(),
        "process_bytes": measure_tree_bytes(pid),
    }


def read_counters(url: str) -> dict[str, dict[str, float]]:
    """Return the counters about memory, by name and engine."""
    text = httpx.get(f"{url}/metrics").text
    found: dict[str, dict[str, float]] = {name: {} for name in COUNTERS}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            for name in COUNTERS:
                if sample.name.endswith(name):
                    found[name][" ".join(sample.labels.values())] = sample.value
    return found


def read_memory() -> list[list[int]]:
    """Return the used and total MiB of each GPU; nothing where there is none."""
    try:
        text = subprocess.run(MEMORY, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [[int(number) for number in line.split(",")] for line in text.splitlines()]


def read_logs(state: Path) -> Iterator[str]:
    """Yield the lines of the engines' logs."""
    for path in sorted(state.rglob("*.log")):
        yield from path.read_text(errors="replace").splitlines()


def parse_arguments(command_line: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model-path", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--clients", type=int, default=16, help="of each kind of chat")
    parser.add_argument("--processes", type=int, default=4, help="client processes")
    parser.add_argument("--max-tokens", type=int, default=64, help="of an answer")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for start or request")
    parser.add_argument("options", nargs="*", help="of sgl-omni serve, after --")
    return parser.parse_args(command_line)


def main(command_line: list[str] | None = None) -> int:
    """Measure, print and write. Return 1 if a request failed."""
    arguments = parse_arguments(command_line)
    result = measure(arguments)
    about = {
        "environment": fingerprint(),
        "arguments": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(arguments).items()
            if name not in ("out", "model_path")
        },
    }
    arguments.out.write_text(json.dumps(about | result) + "\n", encoding="utf-8")
    print(f"ready after {result['ready_s']} s; {result['held']}; {result['after_load']}")
    return 1 if any(row["failed"] for row in result["loads"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
