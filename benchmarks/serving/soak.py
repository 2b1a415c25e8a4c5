"""Send many requests of mixed kinds, from clients who leave, read slowly or send invalid requests.

    sgl-omni serve --version v1 --model-path DIR --port 8000
    python -m benchmarks.serving.soak --url http://127.0.0.1:8000 --requests 10000 --out FILE

Exits with status 1 if a request neither completed nor ended in an error that its client saw, or if
slots, cache, memory, files or tasks did not return to their start. The start is the state after a
tenth of the requests, when every cache is filled and every library loaded.
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

from benchmarks.serving.soak_client import draw_request, send_soak_request
from benchmarks.serving.soak_state import find_leaks, wait_until_settled
from measurement.environment import fingerprint
from sglang_omni.entrypoints.http.transport.uvicorn_server import run

REQUEST_S = 300.0
MAX_SHOWN = 20


@dataclass
class SoakOutcomes:
    """The outcomes of a soak's requests."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    def add(self, outcome: str, reason: str, what: str) -> None:
        """Count the outcome of one request."""
        self.outcomes[outcome] += 1
        if outcome == "lost":
            self.lost.append(f"{what}: {reason}")
        elif reason:
            self.reasons[f"{outcome}: {reason[:60]}"] += 1


async def send_all(
    url: str, requests: int, clients: int, seed: int, speech_only: bool, outcomes: SoakOutcomes
) -> None:
    """Send `requests` requests, `clients` at a time. The same seed sends the same requests."""
    numbers = itertools.count()
    timeout = aiohttp.ClientTimeout(total=REQUEST_S)

    async def client() -> None:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while (number := next(numbers)) < requests:
                request = draw_request(random.Random(f"{seed}-{number}"), speech_only)
                outcome, reason = await send_soak_request(session, url, request)
                outcomes.add(
                    outcome, reason, f"request {number} ({request.behaviour}, {request.path})"
                )

    await asyncio.gather(*(client() for _ in range(clients)))


def soak(
    url: str, requests: int, clients: int, seed: int = 0, speech_only: bool = False
) -> dict[str, Any]:
    """Warm up, send the other requests, and compare the state before and after.

    The warm-up is a tenth of the requests.
    """
    outcomes, num_warm_up = SoakOutcomes(), max(20, requests // 10)
    run(send_all(url, num_warm_up, clients, seed, speech_only, outcomes))
    before = wait_until_settled(url, None)
    started_at = time.monotonic()
    run(send_all(url, requests, clients, seed + 1, speech_only, outcomes))
    seconds = time.monotonic() - started_at
    after = wait_until_settled(url, before)
    return {
        "requests": requests + num_warm_up,
        "seconds": round(seconds, 1),
        "outcomes": dict(outcomes.outcomes),
        "reasons": dict(outcomes.reasons.most_common(MAX_SHOWN)),
        "lost": outcomes.lost[:MAX_SHOWN],
        "complaints": find_leaks(before, after),
        "before": asdict(before),
        "after": asdict(after),
    }


def main() -> int:
    """Soak a server and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speech-only", action="store_true", help="for a synthetic server")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    result = soak(
        arguments.url, arguments.requests, arguments.clients, arguments.seed, arguments.speech_only
    )
    text = json.dumps({"environment": fingerprint(), **result}, indent=1)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 1 if result["lost"] or result["complaints"] else 0


if __name__ == "__main__":
    sys.exit(main())
