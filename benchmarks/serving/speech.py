"""Measure how a running server speaks to many clients over `/v1/audio/speech`.

    python -m benchmarks.serving.speech --url http://127.0.0.1:8000 --clients 1,16,64 --out FILE
    python -m benchmarks.serving.speech --url ... --rate 50 --duration 60 --out FILE
    python -m benchmarks.serving.speech --url ... --listeners 600 --duration 60 --out FILE
    python -m benchmarks.serving.speech --url ... --find-listeners 1200 --duration 30 --out FILE

Clients send their next request when the last was answered; a rate is that of a Poisson process; a
listener plays the answer in real time and sends its next request when playback has ended. Time to
first audio (TTFA) is from the request to the first byte of audio. An underrun is a time at which
playback, started with the first audio, has nothing to play. Failed requests are counted, never left
out. Every row has the client's own share of a core and the lag of its event loop; where
`client_saturated` is true, use more `--processes`.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from benchmarks.client.exchange import RequestRecord
from benchmarks.client.load import Load, record_values, run_load
from benchmarks.client.speech import SpeechQuery
from benchmarks.client.texts import TEXTS
from benchmarks.serving.speech_summary import (
    find_largest_passing,
    format_percentiles,
    has_no_underruns,
    summarise_speech,
)
from measurement.environment import fingerprint
from measurement.openai_api import served_model

FIRST_LISTENERS = 25
SEARCH_PRECISION = 0.05
UNLIMITED_S = 86_400.0

Row = dict[str, Any]


class SpeechBenchmark:
    """Run loads one after the other, keep a row of each, and give every request its own number."""

    def __init__(self, query: SpeechQuery, processes: int) -> None:
        self._query, self._processes = query, processes
        self._first_number = 0
        self.rows: list[Row] = []

    def run(self, load: Load, **about: Any) -> Row:
        """Run a load and record its row."""
        load = replace(load, query=self._query, first_number=self._first_number)
        result = run_load(load, min(self._processes, max(1, int(load.amount))))
        # Processes number their requests with a stride, so that the last may be beyond.
        self._first_number = max(
            (record.number + 1 for record in result.records), default=self._first_number
        )
        row = {"load": load.kind, "amount": load.amount, **about, **summarise_speech(result)}
        print_row(row)
        self.rows.append(row | {"records": [record_values(record) for record in result.records]})
        return row


def measure(
    bench: SpeechBenchmark, query: SpeechQuery, arguments: argparse.Namespace
) -> Iterator[Row]:
    """Run the loads of the command line, after a warm-up that is not reported."""
    if arguments.warm_up:
        load = Load("closed", query, 1, UNLIMITED_S, requests=arguments.warm_up)
        bench.run(load, warm_up=True)
        bench.rows.clear()
    for repeat in range(arguments.repeats):
        for load in build_loads(query, arguments):
            yield bench.run(load, repeat=repeat)


def build_loads(query: SpeechQuery, arguments: argparse.Namespace) -> Iterator[Load]:
    """Yield the loads of one repeat."""
    seconds = arguments.duration
    for clients in arguments.clients:
        requests = arguments.requests or 4 * clients + 16
        yield Load("closed", query, clients, UNLIMITED_S, requests=requests)
    if arguments.rate:
        yield Load("open", query, arguments.rate, seconds)
    for listeners in arguments.listeners:
        yield build_listener_load(query, listeners, arguments)


def build_listener_load(query: SpeechQuery, listeners: int, arguments: argparse.Namespace) -> Load:
    """Build a load of listeners who join over the ramp and stay for the duration after it."""
    seconds = arguments.ramp + arguments.duration
    return Load("listeners", query, listeners, seconds, ramp_s=arguments.ramp)


def find_listeners(
    bench: SpeechBenchmark, query: SpeechQuery, arguments: argparse.Namespace
) -> int:
    """Find the most listeners in real time without an underrun, up to `--find-listeners`."""

    def passes(listeners: int) -> bool:
        return has_no_underruns(bench.run(build_listener_load(query, listeners, arguments)))

    return find_largest_passing(passes, FIRST_LISTENERS, arguments.find_listeners, SEARCH_PRECISION)


def print_row(row: Row) -> None:
    """Print one row as a line."""
    print(
        f"{row['load']:9} {row['amount']:6g}  "
        f"TTFA p50/p95/p99 {format_percentiles(row['ttfa_ms'])} ms  "
        f"{row['audio_s_per_s']:.0f} audio-s/s  {row['requests_per_s']:.1f} req/s  "
        f"underruns {row['underruns']}  failed {row['failed']} of {row['requests']}"
        + ("  CLIENT SATURATED" if row["client_saturated"] else ""),
        flush=True,
    )


def parse_counts(text: str) -> list[int]:
    """Parse a list such as 1,16,64."""
    return [int(number) for number in text.split(",")]


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="the served model, asked for when left out")
    parser.add_argument("--voice")
    parser.add_argument("--format", default="wav", choices=("wav", "pcm"))
    parser.add_argument("--whole", action="store_true", help="complete files, not streamed")
    parser.add_argument("--text", action="append", help="instead of the bundled ones; repeatable")
    parser.add_argument(
        "--clients", type=parse_counts, default=[], help="closed loop, such as 1,16,64"
    )
    parser.add_argument("--requests", type=int, help="of a closed loop; 4 per client and 16 more")
    parser.add_argument("--rate", type=float, help="open loop: requests per second")
    parser.add_argument("--listeners", type=parse_counts, default=[], help="in real time: 100,600")
    parser.add_argument("--find-listeners", type=int, metavar="MOST", help="find the most, to MOST")
    parser.add_argument("--duration", type=float, default=30.0, help="of a rate or of listeners")
    parser.add_argument("--ramp", type=float, default=10.0, help="seconds in which listeners join")
    parser.add_argument("--processes", type=int, default=1, help="client processes")
    parser.add_argument("--warm-up", type=int, default=4, help="requests before the first load")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one request")
    arguments = parser.parse_args()
    if not (arguments.clients or arguments.rate or arguments.listeners or arguments.find_listeners):
        parser.error("give --clients, --rate, --listeners or --find-listeners")
    return arguments


def build_query(arguments: argparse.Namespace) -> SpeechQuery:
    """Build the query of every request from the command line."""
    return SpeechQuery(
        url=arguments.url,
        model=arguments.model or served_model(arguments.url),
        voice=arguments.voice,
        audio_format=arguments.format,
        streaming=not arguments.whole,
        texts=tuple(arguments.text or TEXTS),
        timeout_s=arguments.timeout,
    )


def main() -> int:
    """Measure, print and write. Return 1 if a request failed outside the search."""
    arguments = parse_arguments()
    query = build_query(arguments)
    bench = SpeechBenchmark(query, arguments.processes)
    about = fingerprint()
    print(json.dumps(about))
    rows = list(measure(bench, query, arguments))
    result: Row = {"environment": about, "query": asdict(query)}
    if arguments.find_listeners:
        result["most_listeners"] = find_listeners(bench, query, arguments)
        print(f"listeners in real time without an underrun: {result['most_listeners']}")
    recorded_arguments = {name: value for name, value in vars(arguments).items() if name != "out"}
    columns = [entry.name for entry in fields(RequestRecord)]
    result |= {"arguments": recorded_arguments, "record_columns": columns, "rows": bench.rows}
    arguments.out.write_text(json.dumps(result) + "\n", encoding="utf-8")
    return 0 if all(row["failed"] == 0 for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
