"""What the attacks of one key cost the user of another, on the server that users start first.

    python -m tests.hostile.acceptance.measure --seconds 60 --out FILE
    taskset -c 0-15 python -m tests.hostile.acceptance.measure --client-cores 16-23

The second one keeps the clients off the server's cores, as clients on other machines are.

For each attack: the other user's 95th percentiles beside those of the quiet server, failures,
readiness, restarted processes, memory that stayed, and the worst stall of the event loop. Ends with
status 1 where a bound does not hold.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from measurement.environment import fingerprint
from measurement.process_memory import measure_tree_bytes
from tests.hostile.acceptance.attacks import ATTACKS, LOADS
from tests.hostile.acceptance.other_client import OtherClient
from tests.hostile.acceptance.target import Target
from tests.server.running import RunningServer, run_server, serve_options

KEYS = ("a-key-of-an-attacker", "a-key-of-another-user")
KEYS_VARIABLE = "KEYS_OF_THE_HOSTILE_SUITE"
STALLS = "sgl_omni_event_loop_stall_seconds"
MAX_RATIO = 2.0
MAX_STALL_S = 0.1
STALL_BOUNDS = (0.1, 0.25, 0.5, 1.0)
MAX_GROWTH_BYTES = 100 << 20
MEMORY_SETTLES_S = 20.0
WARM_UP_S = 10.0


@dataclass(frozen=True)
class Effect:
    """What an attack did. `p95_ratios` compares the other user's waits with the quiet ones."""

    attack: str
    outcomes: dict[str, int]
    requests: int
    failures: list[str]
    p95_s: dict[str, float]
    p95_ratios: dict[str, float]
    unready: int
    restarted: list[str]
    growth_bytes: int
    max_stall_s: float

    def broken_bounds(self, patience: float = 1.0) -> list[str]:
        """Name the bounds that did not hold, with the figures.

        Times may be `patience` times as long as they should, where others use the machine.
        """
        max_ratio = MAX_RATIO * patience
        # Stalls are known by the bound of their bucket only.
        max_stall_s = next(bound for bound in STALL_BOUNDS if bound >= MAX_STALL_S * patience)
        slow = {kind: ratio for kind, ratio in self.p95_ratios.items() if ratio > max_ratio}
        checks = {
            f"{len(self.failures)} of {self.requests} failed: {self.failures[:2]}": self.failures,
            f"waits grew too much: {slow}": slow,
            f"/ready failed {self.unready} times": self.unready,
            f"restarted: {self.restarted}": self.restarted,
            f"memory grew by {self.growth_bytes >> 20} MB": self.growth_bytes > MAX_GROWTH_BYTES,
            f"the event loop stood for {self.max_stall_s} s": self.max_stall_s > max_stall_s,
        }
        return [said for said, broken in checks.items() if broken]


@dataclass(frozen=True)
class State:
    """A server between two attacks. `stalls` counts by upper bound in seconds."""

    processes: dict[str, int]
    memory_bytes: int
    stalls: dict[float, float]


class Measurement:
    """Runs attacks against a server and compares with its quiet state."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._attacker, self._other = (Target(server.url, key) for key in KEYS)
        self.quiet_p95_s: dict[str, float] = {}

    def measure_quiet(self, seconds: float) -> None:
        """Measure the other user's waits while nobody attacks. Raises `AssertionError`."""
        OtherClient(self._other).run(WARM_UP_S)
        client = OtherClient(self._other)
        client.run(seconds)
        assert not client.failures, client.failures
        assert not client.unready
        self.quiet_p95_s = client.p95()

    def measure(self, name: str, seconds: float, workers: int) -> Effect:
        """Attack for so long, and say what it did to the other user and the server."""
        before = self._state()
        client = OtherClient(self._other)
        with attacking(name, self._attacker, seconds, workers) as attacker:
            client.run(seconds)
        # It may wait for answers that take their time.
        printed, _ = attacker.communicate(timeout=180)
        after = self._settled(before)
        p95_s = client.p95()
        return Effect(
            attack=name,
            outcomes=json.loads(printed),
            requests=sum(map(len, client.waits.values())) + len(client.failures),
            failures=client.failures,
            p95_s=p95_s,
            p95_ratios={
                kind: round(wait / self.quiet_p95_s[kind], 2) for kind, wait in p95_s.items()
            },
            unready=client.unready,
            restarted=[
                one for one, pid in before.processes.items() if after.processes.get(one) != pid
            ],
            growth_bytes=after.memory_bytes - before.memory_bytes,
            max_stall_s=longest_stall(before.stalls, after.stalls),
        )

    def _settled(self, before: State) -> State:
        """Return the state once memory is back, or after a while."""
        end = time.monotonic() + MEMORY_SETTLES_S
        while True:
            state = self._state()
            grown = state.memory_bytes - before.memory_bytes
            if grown <= MAX_GROWTH_BYTES // 2 or time.monotonic() > end:
                return state
            time.sleep(1)

    def _state(self) -> State:
        with self._other.client() as client:
            engines = client.get("/health").json()["engines"]
            metrics = client.get("/metrics").text
        return State(
            {name: engine["pid"] for name, engine in engines.items()},
            measure_tree_bytes(self._server.pid),
            {
                float(sample.labels["le"]): sample.value
                for family in text_string_to_metric_families(metrics)
                if family.name == STALLS
                for sample in family.samples
                if sample.name.endswith("_bucket")
            },
        )


@contextmanager
def attacking(
    name: str, target: Target, seconds: float, workers: int
) -> Iterator[subprocess.Popen[str]]:
    """Attack in a process of its own while the body runs."""
    command = [sys.executable, "-m", "tests.hostile.acceptance.attacks", name, target.url]
    command += ["--seconds", str(seconds), "--workers", str(workers)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdin is not None
    process.stdin.write(target.key + "\n")
    process.stdin.flush()
    try:
        yield process
    except BaseException:
        process.kill()
        process.wait()
        raise


def parse_cores(text: str) -> set[int]:
    """Return the cores of a range such as "16-23"."""
    first, last = map(int, text.split("-"))
    return set(range(first, last + 1))


def longest_stall(before: dict[float, float], after: dict[float, float]) -> float:
    """Return the upper bound, in seconds, of the worst stall between two readings."""
    total = after[math.inf] - before[math.inf]
    return min(bound for bound in after if after[bound] - before[bound] == total)


@contextmanager
def default_server_with_keys() -> Iterator[RunningServer]:
    """The server that users start first, with default settings and the two keys."""
    command = (
        "-m",
        "sglang_omni",
        "serve",
        "--version",
        "v1",
        *serve_options(),
    )
    keys = ("--api-key", f"env:{KEYS_VARIABLE}")
    with run_server(*command, *keys, ready="/ready", env={KEYS_VARIABLE: ",".join(KEYS)}) as one:
        yield one


def main() -> int:
    """Measure every attack, or those named; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each attack")
    parser.add_argument("--workers", type=int, default=2, help="rounds at the same time")
    parser.add_argument(
        "--client-cores", type=parse_cores, metavar="FIRST-LAST", help="cores of all clients"
    )
    parser.add_argument("--attacks", nargs="*", choices=[*ATTACKS, *LOADS], default=list(ATTACKS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    effects = []
    server_cores = os.sched_getaffinity(0)
    with default_server_with_keys() as server:
        os.sched_setaffinity(0, given.client_cores or server_cores)
        measurement = Measurement(server)
        measurement.measure_quiet(given.seconds)
        print("quiet", measurement.quiet_p95_s, flush=True)
        for name in given.attacks:
            effects.append(measurement.measure(name, given.seconds, given.workers))
            print(json.dumps(asdict(effects[-1])), effects[-1].broken_bounds(), flush=True)
    result = {
        "environment": fingerprint(),
        "server_cores": len(server_cores),
        "client_cores": len(given.client_cores or server_cores),
        "seconds": given.seconds,
        "quiet_p95_s": measurement.quiet_p95_s,
        "attacks": [asdict(one) for one in effects],
    }
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if any(one.broken_bounds() for one in effects) else 0


if __name__ == "__main__":
    sys.exit(main())
