"""What a server bears at several times its capacity: those who are admitted must hardly notice, and
those who are not must be told at once.

    python -m benchmarks.serving.overload --seconds 300 --times 4 --out FILE

A synthetic talker in a real engine process, behind the real admission and the real HTTP server.
First a closed loop keeps every slot and every place in the queue taken: that is full admitted
capacity. Then requests come as a Poisson process, at several times the rate that was served.
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
LEFT = ("active_slots", "waiting", "admitted", "queued")


@dataclass(frozen=True)
class Served:
    """How a load was served: counts, and seconds (p50, p95, worst)."""

    requests: int
    admitted: int
    refused: int
    failed: int
    per_second: float
    ttfa_s: tuple[float, float, float]
    refusal_s: tuple[float, float, float]


def summary(records: Sequence[RequestRecord], seconds: float) -> Served:
    """Count what came of a load that took `seconds`."""
    admitted = [one for one in records if one.error is None]
    refused = [one for one in records if one.status == 429]
    return Served(
        requests=len(records),
        admitted=len(admitted),
        refused=len(refused),
        failed=len(records) - len(admitted) - len(refused),
        per_second=len(admitted) / seconds,
        ttfa_s=spread([one.ttfa_s for one in admitted if one.ttfa_s is not None]),
        refusal_s=spread([one.took_s for one in refused]),
    )


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, the 95th percentile and the largest, zeros of none."""
    if not values:
        return (0.0, 0.0, 0.0)
    ordered = sorted(values)

    def at(part: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(part * len(ordered)))], 4)

    return at(0.5), at(0.95), round(ordered[-1], 4)


@contextmanager
def synthetic(*options: str) -> Iterator[str]:
    """The address of a synthetic server with these options, while the body runs."""
    port = find_rendezvous_port()  # Kept free until the server has started.
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
    """Both loads on one server: full admitted capacity, and `times` its rate."""
    options = ["--slots", str(slots), "--batch", str(slots), "--queue-length", str(queue)]
    pace = ["--step-ms", "60", "--stream-ms", "2", "--patches", "10"]
    with synthetic(*options, *pace) as url:
        query = SpeechQuery(url, "ming-omni")
        run_load(Load("closed", query, 1, 60, requests=2), 1)  # Nothing is cold after it.
        full = run_load(Load("closed", query, slots + queue, seconds), processes)
        at_capacity = summary(full.records, full.ended_s - full.began_s)
        rate = times * at_capacity.per_second
        over = run_load(Load("open", query, rate, seconds), processes)
        overloaded = summary(over.records, over.ended_s - over.began_s)
        left = settled(url)
    return {
        "seconds": seconds,
        "slots": slots,
        "queue": queue,
        "offered_per_second": round(rate, 2),
        "capacity": asdict(at_capacity),
        "overload": asdict(overloaded),
        "ttfa_p95_ratio": round(overloaded.ttfa_s[1] / at_capacity.ttfa_s[1], 3),
        "left": left,
    }


def settled(url: str) -> dict[str, int]:
    """What the talker still counts once it counts nothing, or after a while: its counts come with
    heartbeats, so that the last requests are in them for a moment."""
    end = time.monotonic() + SETTLE_S
    while True:
        counters = httpx.get(f"{url}/health").json()["engines"]["talker"]["counters"]
        left = {name: int(counters[name]) for name in LEFT}
        if not any(left.values()) or time.monotonic() > end:
            return left
        time.sleep(0.1)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="of each of the two loads")
    parser.add_argument("--times", type=float, default=4.0)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--queue", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    result = measure(given.seconds, given.times, given.slots, given.queue)
    given.out.write_text(json.dumps({"environment": fingerprint(), **result}, indent=1) + "\n")
    print(result)


if __name__ == "__main__":
    main()
