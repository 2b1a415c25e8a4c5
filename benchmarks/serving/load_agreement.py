r"""Check that this harness measures the same times as SGLang's load generator under the same load.

    python -m benchmarks.serving.load_agreement --tokenizer DIR --out FILE
    python -m benchmarks.serving.load_agreement --tokenizer DIR --url http://127.0.0.1:8000 \
        --rounds 9

Both ask the texts of `sweep/text`, in their order, with the same number of clients. Both go through
a relay, which removes a field of `sglang.benchmark.serving` that not every server knows
(`ignore_eos`). Rounds alternate, after a warm-up round that does not count. Means over rounds are
compared; the command fails where one differs by more than 5 %. Without a server it asks one that
answers at fixed times, since a real one on a busy machine differs by more than that from one round
to the next.

The peer's TPOT counts to the end of the stream, ours to the last token; here ours is computed as
the peer computes it.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import aiohttp
from aiohttp import web

from benchmarks.client.target import ChatRequest, TextPart
from benchmarks.evaluation.tasks import TASKS
from measurement.environment import fingerprint
from measurement.openai_api import served_model

MAX_DIFFERENCE = 0.05
TASK = "sweep/text"
UNKNOWN_FIELDS = ("ignore_eos",)
# The names of this harness and of the peer.
METRICS = {
    "requests_per_s": "request_throughput",
    "tokens_per_s": "output_throughput",
    "ttft_ms.mean": "mean_ttft_ms",
    "tpot_ms.mean": "mean_tpot_ms",
    "took_ms.mean": "mean_e2e_latency_ms",
}
Numbers = dict[str, float]


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
FIRST_S, BETWEEN_S, TOKENS = 0.06, 0.015, 24


async def answer_at_fixed_times(request: web.Request) -> web.StreamResponse:
    """Answer with 24 tokens at fixed times: the same server for both load generators."""
    if request.path == "/v1/models":
        return web.json_response({"data": [{"id": "paced"}]})
    if request.method != "POST":
        return web.json_response({})
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    due_s = time.monotonic() + FIRST_S
    for _ in range(TOKENS):
        await asyncio.sleep(due_s - time.monotonic())
        await reply.write(b'data: {"choices": [{"delta": {"content": "so "}}]}\n\n')
        due_s += BETWEEN_S
    usage = {"prompt_tokens": 9, "completion_tokens": TOKENS, "total_tokens": TOKENS + 9}
    end = json.dumps({"choices": [], "usage": usage})
    await reply.write(f"data: {end}\n\ndata: [DONE]\n\n".encode())
    return reply


def build_relay(url: str, session: aiohttp.ClientSession) -> Handler:
    """Return a handler that forwards requests without the fields that a server may reject."""

    async def forward(request: web.Request) -> web.StreamResponse:
        data = await request.read()
        if data:
            body = json.loads(data)
            data = json.dumps({k: v for k, v in body.items() if k not in UNKNOWN_FIELDS}).encode()
        headers = {"Content-Type": "application/json"}
        async with session.request(
            request.method, url + request.path, data=data, headers=headers
        ) as reply:
            response = web.StreamResponse(status=reply.status)
            response.content_type = reply.content_type
            await response.prepare(request)
            async for chunk in reply.content.iter_any():
                await response.write(chunk)
            return response

    return forward


@contextmanager
def running_relay(url: str | None) -> Iterator[str]:
    """Run a relay to the server, or the paced server, on a free loopback port in a thread."""
    loop, ready, stopped = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    address: list[str] = []

    async def serve() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            app = web.Application()
            app.router.add_route(
                "*", "/{path:.*}", build_relay(url, session) if url else answer_at_fixed_times
            )
            runner = web.AppRunner(app)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            address.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
            ready.set()
            await stopped.wait()
            await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()


def write_questions(count: int, path: Path) -> None:
    """Write the texts of the task in the form that the peer reads."""
    lines = []
    for sample in TASKS[TASK].samples("fixture", count):
        request = sample.request
        assert isinstance(request, ChatRequest)
        assert isinstance(request.parts[0], TextPart)
        line: dict[str, Any] = {
            "messages": [{"role": "user", "content": request.parts[0].text}],
            "seed": request.seed,
        }
        line |= {"max_tokens": request.max_tokens, "temperature": 0.0}
        lines.append(json.dumps(line | {"stream_options": {"include_usage": True}}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def copy_with_template(tokenizer: Path, folder: Path) -> Path:
    """Copy the tokenizer with a chat template, by which the peer counts the tokens of prompts."""
    folder.mkdir()
    for name in ("tokenizer.json", "special_tokens_map.json"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    config = json.loads((tokenizer / "tokenizer_config.json").read_text(encoding="utf-8"))
    template = {"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(template | config), encoding="utf-8")
    return folder


def run_our_round(url: str, clients: int, count: int, folder: Path) -> Numbers:
    """Run one round with this harness."""
    command = ["--task", TASK, "--clients", str(clients), "--samples", str(count), "--url", url]
    command += ["--warm-up", "0", "--out", str(folder), "--dialect", "sglang-omni"]
    _run(["benchmarks.evaluation.evaluate", *command])
    result = json.loads((folder / "run.json").read_text())
    numbers = {k: v["mean"] for k, v in result["summary"][0]["over_repeats"].items()}
    numbers["tpot_ms.mean"] = fmean(
        1e3 * (record["took_s"] - record["ttft_s"]) / (record["tokens"] - 1)
        for record in result["records"]
        if record["tokens"] > 1
    )
    return {name: numbers[name] for name in METRICS}


def run_sglang_round(
    url: str, clients: int, count: int, folder: Path, tokenizer: str, model: str
) -> Numbers:
    """Run one round with SGLang's load generator."""
    folder.mkdir()
    write_questions(count, folder / "questions.jsonl")
    command = ["--backend", "sglang-oai-chat", "--base-url", url, "--dataset-name", "openai"]
    command += ["--dataset-path", str(folder / "questions.jsonl"), "--num-prompts", str(count)]
    command += ["--max-concurrency", str(clients), "--output-file", str(folder / "out.jsonl")]
    command += ["--model", model, "--tokenizer", tokenizer, "--disable-tqdm"]
    _run(["sglang.benchmark.serving", *command, "--warmup-requests", "0"])

    result = json.loads((folder / "out.jsonl").read_text().splitlines()[-1])
    return {name: float(result[peer_name]) for name, peer_name in METRICS.items()}


def _run(module: Sequence[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *module], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def compare_rounds(rounds: Sequence[tuple[Numbers, Numbers]]) -> Mapping[str, Numbers]:
    """Return the means over the rounds, and the relative difference of ours."""
    result = {}
    for name in METRICS:
        our_mean, peer_mean = (
            fmean(round_numbers[side][name] for round_numbers in rounds) for side in (0, 1)
        )
        result[name] = {"ours": our_mean, "theirs": peer_mean, "differs": our_mean / peer_mean - 1}
    return result


def main() -> int:
    """Compare, print and write. Return 1 if a number differs by more than 5 %."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="of a running server; else one that answers at fixed times")
    parser.add_argument(
        "--tokenizer", type=Path, required=True, help="the folder of the served checkpoint"
    )
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rounds, load = [], (arguments.clients, arguments.requests)
    with running_relay(arguments.url) as url, tempfile.TemporaryDirectory() as temp_dir:
        model = served_model(url)
        tokenizer = copy_with_template(arguments.tokenizer, Path(temp_dir, "tokenizer"))
        for number in range(arguments.rounds + 1):
            folder = Path(temp_dir, str(number))
            folder.mkdir()
            our_numbers = run_our_round(url, *load, folder / "ours")
            peer_numbers = run_sglang_round(url, *load, folder / "theirs", str(tokenizer), model)
            rounds.append((our_numbers, peer_numbers))
    compared = compare_rounds(rounds[1:])
    for name, row in compared.items():
        print(
            f"{name:16} ours {row['ours']:9.2f}  theirs {row['theirs']:9.2f}  {row['differs']:+.1%}"
        )
    if arguments.out:
        about = {"environment": fingerprint(), "clients": load[0], "requests": load[1]}
        result = about | {"compared": compared, "rounds": rounds[1:]}
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(abs(row["differs"]) <= MAX_DIFFERENCE for row in compared.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
