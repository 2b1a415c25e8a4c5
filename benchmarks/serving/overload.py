"""Measure a server at several times its capacity.

    python -m benchmarks.serving.overload --seconds 300 --times 4 --out FILE

Admitted requests must hardly be slower, and the others must be rejected at once. A synthetic talker
runs in a real engine process, behind the real admission and the real HTTP server. First a closed
loop keeps every slot and every place in the queue taken: this is the full admitted capacity. Then
requests arrive as a Poisson process, at several times the rate that was served.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.client.exchange import RequestRecord
from benchmarks.client.load import Load, run_load
from benchmarks.client.speech import SpeechQuery
from benchmarks.serving.ready import wait_ready
from measurement.environment import fingerprint
from sglang_omni.engines.runtime.ports import find_rendezvous_port

ROOT = Path(__file__).parents[2]
START_S, SETTLE_S = 60.0, 5.0
REMAINING_COUNTERS = ("active_slots", "waiting", "admitted", "queued")


@dataclass(frozen=True)
class LoadSummary:
    """The summary of a load: counts, and times in seconds (p50, p95, maximum)."""

    requests: int
    admitted: int
    refused: int
    failed: int
    per_second: float
    ttfa_s: tuple[float, float, float]
    refusal_s: tuple[float, float, float]


def summarise(records: Sequence[RequestRecord], seconds: float) -> LoadSummary:
    """Summarise the records of a load that took `seconds`."""
    admitted = [record for record in records if record.error is None]
    refused = [record for record in records if record.status == 429]
    return LoadSummary(
        requests=len(records),
        admitted=len(admitted),
        refused=len(refused),
        failed=len(records) - len(admitted) - len(refused),
        per_second=len(admitted) / seconds,
        ttfa_s=summarise_times([record.ttfa_s for record in admitted if record.ttfa_s is not None]),
        refusal_s=summarise_times([record.took_s for record in refused]),
    )


def summarise_times(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the 95th percentile and the maximum; zeros without values."""
    if not values:
        return (0.0, 0.0, 0.0)
    ordered = sorted(values)

    def quantile(fraction: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(fraction * len(ordered)))], 4)

    return quantile(0.5), quantile(0.95), round(ordered[-1], 4)


@contextmanager
def synthetic_server(*options: str) -> Iterator[str]:
    """Run a synthetic server with these options, and yield its address."""
    port = find_rendezvous_port()  # The port stays reserved until the server starts.
    command = [sys.executable, "-m", "benchmarks.synthetic.server", "--port", str(port), *options]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_ready(f"http://127.0.0.1:{port}", process, START_S)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def measure(
    seconds: float, times: float, slots: int, queue: int, processes: int = 1
) -> dict[str, Any]:
    """Run both loads on one server: full admitted capacity, and `times` its rate."""
    options = ["--slots", str(slots), "--batch", str(slots), "--queue-length", str(queue)]
    pace = ["--step-ms", "60", "--stream-ms", "2", "--patches", "10"]
    with synthetic_server(*options, *pace) as url:
        query = SpeechQuery(url, "ming-omni")
        run_load(Load("closed", query, 1, 60, requests=2), 1)  # Warm-up.
        capacity_load = run_load(Load("closed", query, slots + queue, seconds), processes)
        at_capacity = summarise(
            capacity_load.records, capacity_load.ended_s - capacity_load.began_s
        )
        rate = times * at_capacity.per_second
        overload = run_load(Load("open", query, rate, seconds), processes)
        overloaded = summarise(overload.records, overload.ended_s - overload.began_s)
        remaining = wait_until_settled(url)
    return {
        "seconds": seconds,
        "slots": slots,
        "queue": queue,
        "offered_per_second": round(rate, 2),
        "capacity": asdict(at_capacity),
        "overload": asdict(overloaded),
        "ttfa_p95_ratio": round(overloaded.ttfa_s[1] / at_capacity.ttfa_s[1], 3),
        "left": remaining,
    }


def wait_until_settled(url: str) -> dict[str, int]:
    """Return the talker's remaining counters once all are zero, or after a timeout.

    Heartbeats bring the counts, so that the last requests are counted a moment longer.
    """
    deadline = time.monotonic() + SETTLE_S
    while True:
        counters = httpx.get(f"{url}/health").json()["engines"]["talker"]["counters"]
        remaining = {name: int(counters[name]) for name in REMAINING_COUNTERS}
        if not any(remaining.values()) or time.monotonic() > deadline:
            return remaining
        time.sleep(0.1)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="of each of the two loads")
    parser.add_argument("--times", type=float, default=4.0)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--queue", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    result = measure(arguments.seconds, arguments.times, arguments.slots, arguments.queue)
    arguments.out.write_text(json.dumps({"environment": fingerprint(), **result}, indent=1) + "\n")
    print(result)


if __name__ == "__main__":
    main()
