"""Measure how long speech waits for its first audio while a running server draws images.

    python -m benchmarks.serving.speech_beside_images --url http://127.0.0.1:8000 --out FILE

Some clients ask for spoken answers over `/v1/chat/completions`, each its next one when the last has
ended: alone, then while others draw one image after the other, then alone again. The JSON has a row
of each, the images that were drawn meanwhile, the time of an image alone, and the ratio of the 95th
percentiles of the time to first audio (TTFA), beside images to the slower of both alone.
"""

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import httpx

from benchmarks.client.chat import ChatQuery, ChatRecord
from benchmarks.client.load import Load, record_values, run_load
from benchmarks.serving.chat_summary import summarise_chats
from benchmarks.serving.speech import UNLIMITED_S
from benchmarks.serving.speech_summary import format_percentiles
from measurement.environment import fingerprint
from measurement.openai_api import served_model

Row = dict[str, Any]
IMAGES = "/v1/images/generations"
PROMPT = "a cat on a mat"


@dataclass(frozen=True)
class ImageRequest:
    """The images that are drawn."""

    url: str
    size: str
    steps: int
    timeout_s: float

    def draw(self, client: httpx.Client, seed: int) -> float:
        """Draw one, and return its seconds. Raises `httpx.HTTPStatusError`."""
        body = {"prompt": PROMPT, "size": self.size, "steps": self.steps, "seed": seed}
        started = time.monotonic()
        client.post(f"{self.url}{IMAGES}", json=body).raise_for_status()
        return time.monotonic() - started


@dataclass
class Drawn:
    """The seconds of each image that was drawn, and what failed."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@contextmanager
def drawing(request: ImageRequest, clients: int) -> Iterator[Drawn]:
    """Draw with so many clients while the body runs. The images under way then end too."""
    drawn, ending = Drawn(), threading.Event()
    threads = [
        threading.Thread(target=_draw_until, args=(request, index, clients, ending, drawn))
        for index in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield drawn
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def _draw_until(
    request: ImageRequest, first_seed: int, stride: int, ending: threading.Event, drawn: Drawn
) -> None:
    seed = first_seed
    with httpx.Client(timeout=request.timeout_s) as client:
        while not ending.is_set():
            try:
                drawn.seconds.append(request.draw(client, seed))
            except httpx.HTTPError as error:
                drawn.errors.append(f"{type(error).__name__}: {error}")
                return
            seed += stride


class SpeechLoads:
    """Loads of spoken answers; every request has its own number."""

    def __init__(self, query: ChatQuery, clients: int, requests: int, processes: int) -> None:
        self._query, self._clients, self._requests = query, clients, requests
        self._processes, self._number = processes, 0

    def run(self, about: str) -> Row:
        """Answer all requests of one load, and return its row."""
        load = Load(
            "closed",
            self._query,
            self._clients,
            UNLIMITED_S,
            requests=self._requests,
            first_number=self._number,
        )
        result = run_load(load, self._processes)
        self._number = max(record.number for record in result.records) + 1
        row = {"beside": about, "clients": self._clients, **summarise_chats(result)}
        print(
            f"{about:12} TTFA p50/p95/p99 {format_percentiles(row['ttfa_ms'])} ms  "
            f"{row['audio_s_per_s']:.1f} audio-s/s  failed {row['failed']} of {row['requests']}",
            flush=True,
        )
        return row | {"records": [record_values(record) for record in result.records]}


def measure(arguments: argparse.Namespace) -> Row:
    """Measure speech alone, beside images, and alone again."""
    query = ChatQuery(arguments.url, arguments.model, "speech", timeout_s=arguments.timeout)
    request = ImageRequest(arguments.url, arguments.size, arguments.steps, arguments.timeout)
    requests = arguments.requests or 6 * arguments.clients
    warm_up = SpeechLoads(query, arguments.clients, 2 * arguments.clients, arguments.processes)
    warm_up.run("warm-up")
    with httpx.Client(timeout=arguments.timeout) as client:
        # The first image may compile.
        times = [request.draw(client, seed) for seed in range(2)]
    print(f"an image alone takes {times[-1]:.2f} s", flush=True)
    loads = SpeechLoads(query, arguments.clients, requests, arguments.processes)
    rows = [loads.run("nothing")]
    with drawing(request, arguments.drawing_clients) as drawn:
        rows.append(loads.run("images"))
    rows.append(loads.run("nothing"))
    return {
        "image_alone_s": round(times[-1], 3),
        "images_drawn": len(drawn.seconds),
        "images_s": [round(one, 3) for one in drawn.seconds],
        "images_failed": drawn.errors,
        "ttfa_p95_ratio": compute_ratio(rows),
        "rows": rows,
    }


def compute_ratio(rows: list[Row]) -> float | None:
    """Return the 95th percentile of TTFA beside images, relative to the slower load alone.

    None if all requests of a load failed.
    """
    p95 = {"nothing": 0.0, "images": 0.0}
    for row in rows:
        if row["ttfa_ms"]["p95"] is None:
            return None
        p95[row["beside"]] = max(p95[row["beside"]], row["ttfa_ms"]["p95"])
    return round(p95["images"] / p95["nothing"], 3)


def parse_arguments(command_line: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="the served model, asked for when left out")
    parser.add_argument("--system", default="", help="what serves: GPUs, precision")
    parser.add_argument("--clients", type=int, default=16, help="that listen")
    parser.add_argument("--requests", type=int, help="of each load; 6 per client")
    parser.add_argument("--processes", type=int, default=4, help="client processes of speech")
    parser.add_argument("--drawing-clients", type=int, default=1)
    parser.add_argument("--size", default="1024x1024", help="of the images")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one request")
    return parser.parse_args(command_line)


def main(command_line: list[str] | None = None) -> int:
    """Measure, print and write. Return 1 if a request failed."""
    arguments = parse_arguments(command_line)
    arguments.model = arguments.model or served_model(arguments.url)
    result = measure(arguments)
    about = {
        "environment": fingerprint(),
        "arguments": {name: value for name, value in vars(arguments).items() if name != "out"},
        "record_columns": [entry.name for entry in fields(ChatRecord)],
    }
    arguments.out.write_text(json.dumps(about | result) + "\n", encoding="utf-8")
    print(f"{result['images_drawn']} images meanwhile; TTFA p95 ratio {result['ttfa_p95_ratio']}")
    failed = result["images_failed"] or any(row["failed"] for row in result["rows"])
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
