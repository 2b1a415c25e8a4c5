"""Measure how a running server answers many clients over `/v1/chat/completions`.

    python -m benchmarks.serving.chats --url http://127.0.0.1:8000 --clients 1,16 --out FILE
    python -m benchmarks.serving.chats --kinds speech --rate 8 --duration 60 --out FILE
    python -m benchmarks.evaluation.report FILE ...          # beside published numbers

There are three kinds of chat: text, an image of its own with a question, and an answer in speech.
Clients of a closed loop send their next request when the last was answered; a rate is that of a
Poisson process. TTFT is from the request to the first text, TPOT the mean time between tokens, TTFA
from the request to the first audio. An underrun is a time at which playback, started with the first
audio, has nothing to play. Failed requests are counted, never left out. Where `client_saturated` is
true, use more `--processes`.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

from benchmarks.client.chat import ChatQuery, ChatRecord, Kind
from benchmarks.client.load import Load, record_values, run_load
from benchmarks.serving.chat_summary import summarise_chats
from benchmarks.serving.speech import UNLIMITED_S, parse_counts
from benchmarks.serving.speech_summary import format_percentiles
from measurement.environment import fingerprint
from measurement.openai_api import served_model

Row = dict[str, Any]


def build_loads(query: ChatQuery, arguments: argparse.Namespace) -> Iterator[Load]:
    """Yield the loads of the command line for one kind of chat."""
    for clients in arguments.clients:
        requests = arguments.requests or 4 * clients + 16
        yield Load("closed", query, clients, UNLIMITED_S, requests=requests)
    if arguments.rate:
        yield Load("open", query, arguments.rate, arguments.duration)


def measure(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield rows of every kind of chat under every load, after a warm-up of each kind."""
    number = 0
    for kind in arguments.kinds:
        query = build_query(kind, arguments)
        warm_up = Load("closed", query, 1, UNLIMITED_S, requests=arguments.warm_up)
        loads = [warm_up, *build_loads(query, arguments)]
        for load in loads:
            result = run_load(
                _with_first_number(load, number), min(arguments.processes, max(1, int(load.amount)))
            )
            # Processes number their requests with a stride, so that the last may be beyond.
            number = max((record.number + 1 for record in result.records), default=number)
            if load is warm_up:
                continue
            row = {
                "chat": kind,
                "load": load.kind,
                "amount": load.amount,
                **summarise_chats(result),
            }
            print_row(row)
            yield row | {"records": [record_values(record) for record in result.records]}


def _with_first_number(load: Load, first: int) -> Load:
    return Load(
        load.kind, load.query, load.amount, load.duration_s, load.requests, first_number=first
    )


def build_query(kind: Kind, arguments: argparse.Namespace) -> ChatQuery:
    """Build the query of a kind of chat from the command line."""
    return ChatQuery(
        url=arguments.url,
        model=arguments.model,
        kind=kind,
        side=arguments.side,
        max_tokens=arguments.max_tokens,
        voice=arguments.voice,
        timeout_s=arguments.timeout,
    )


def print_row(row: Row) -> None:
    """Print one row as a line."""
    speech = (
        f"TTFA {format_percentiles(row['ttfa_ms'])}  {row['audio_s_per_s']:.1f} audio-s/s  "
        f"underruns {row['underruns']}  "
    )
    print(
        f"{row['chat']:6} {row['load']:6} {row['amount']:5g}  TTFT p50/p95/p99 "
        f"{format_percentiles(row['ttft_ms'])} ms  TPOT {row['tpot_ms']['p50'] or 0:.2f} ms  "
        f"{speech if row['audio_s_per_s'] else ''}{row['tokens_per_s']:.0f} tok/s  "
        f"{row['requests_per_s']:.2f} req/s  failed {row['failed']} of {row['requests']}"
        + ("  CLIENT SATURATED" if row["client_saturated"] else ""),
        flush=True,
    )


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="the served model, asked for when left out")
    parser.add_argument("--system", default="", help="what serves, for the table: cards, precision")
    parser.add_argument("--kinds", nargs="+", default=list(get_args(Kind)), choices=get_args(Kind))
    parser.add_argument(
        "--clients", type=parse_counts, default=[], help="closed loop, such as 1,16"
    )
    parser.add_argument("--requests", type=int, help="of a closed loop; 4 per client and 16 more")
    parser.add_argument("--rate", type=float, help="open loop: requests per second")
    parser.add_argument("--duration", type=float, default=30.0, help="of an open loop")
    parser.add_argument("--side", type=int, default=1024, help="of the square pictures, in pixels")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--voice")
    parser.add_argument("--processes", type=int, default=1, help="client processes")
    parser.add_argument("--warm-up", type=int, default=4, help="requests of each kind before")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one request")
    arguments = parser.parse_args()
    if not (arguments.clients or arguments.rate):
        parser.error("give --clients or --rate")
    return arguments


def main() -> int:
    """Measure, print and write. Return 1 if a request failed."""
    arguments = parse_arguments()
    arguments.model = arguments.model or served_model(arguments.url)
    about = fingerprint()
    print(json.dumps(about))
    rows: list[Row] = []
    result: Row = {
        "environment": about,
        "arguments": {name: value for name, value in vars(arguments).items() if name != "out"},
        "query": {k: v for k, v in asdict(build_query("text", arguments)).items() if k != "kind"},
        "record_columns": [entry.name for entry in fields(ChatRecord)],
        "rows": rows,
    }
    for row in measure(arguments):
        rows.append(row)
        # After each row, so that an interrupted run keeps its rows.
        arguments.out.write_text(json.dumps(result) + "\n", encoding="utf-8")
    return 0 if all(row["failed"] == 0 for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
