"""Many requests of mixed kinds, from clients who leave at any moment, read slowly or send nonsense;
then everything must be as it was, and nobody may have been lost.

    sgl-omni serve --version v1 --model-path DIR --port 8000
    python -m benchmarks.serving.soak --url http://127.0.0.1:8000 --requests 10000 --out FILE

Ends with status 1 if a request neither completed nor ended in an error that its client saw, or if
slots, cache, memory, files or tasks did not return to their start. The start is what the server
holds after a tenth of the requests: by then every cache is filled and every library loaded.
"""

import argparse
import asyncio
import itertools
import json
import random
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.serving.soak_client import make, perform
from benchmarks.serving.soak_state import complaints, settled
from measurement.environment import fingerprint
from sglang_omni.entrypoints.http.transport.uvicorn_server import run

REQUEST_S = 300.0
MOST_SHOWN = 20


@dataclass
class Tally:
    """How the requests of a soak ended."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    def note(self, outcome: str, reason: str, what: str) -> None:
        """Count one."""
        self.outcomes[outcome] += 1
        if outcome == "lost":
            self.lost.append(f"{what}: {reason}")
        elif reason:
            self.reasons[f"{outcome}: {reason[:60]}"] += 1


async def ask_all(
    url: str, requests: int, clients: int, seed: int, speech_only: bool, tally: Tally
) -> None:
    """Make so many requests, `clients` at a time. The same seed asks the same."""
    numbers = itertools.count()
    timeout = aiohttp.ClientTimeout(total=REQUEST_S)

    async def client() -> None:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while (number := next(numbers)) < requests:
                ask = make(random.Random(f"{seed}-{number}"), speech_only)
                outcome, reason = await perform(session, url, ask)
                tally.note(outcome, reason, f"request {number} ({ask.manner}, {ask.path})")

    await asyncio.gather(*(client() for _ in range(clients)))


def soak(
    url: str, requests: int, clients: int, seed: int = 0, speech_only: bool = False
) -> dict[str, Any]:
    """Warm up with a tenth of the requests, make the others, and compare before and after."""
    tally, warm = Tally(), max(20, requests // 10)
    run(ask_all(url, warm, clients, seed, speech_only, tally))
    before = settled(url, None)
    began = time.monotonic()
    run(ask_all(url, requests, clients, seed + 1, speech_only, tally))
    seconds = time.monotonic() - began
    after = settled(url, before)
    return {
        "requests": requests + warm,
        "seconds": round(seconds, 1),
        "outcomes": dict(tally.outcomes),
        "reasons": dict(tally.reasons.most_common(MOST_SHOWN)),
        "lost": tally.lost[:MOST_SHOWN],
        "complaints": complaints(before, after),
        "before": asdict(before),
        "after": asdict(after),
    }


def main() -> int:
    """Soak a server; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speech-only", action="store_true", help="for a synthetic server")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    result = soak(given.url, given.requests, given.clients, given.seed, given.speech_only)
    text = json.dumps({"environment": fingerprint(), **result}, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 1 if result["lost"] or result["complaints"] else 0


if __name__ == "__main__":
    sys.exit(main())
