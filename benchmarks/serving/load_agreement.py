"""Check that this harness measures the same times as SGLang's load generator under the same load.

    python -m benchmarks.serving.load_agreement --tokenizer DIR --out FILE
    python -m benchmarks.serving.load_agreement --tokenizer DIR --url http://127.0.0.1:8000 \\
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

LIMIT = 0.05
TASK = "sweep/text"
UNKNOWN_FIELDS = ("ignore_eos",)
# Ours, theirs.
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


async def paced(request: web.Request) -> web.StreamResponse:
    """Answers of 24 tokens at fixed times: a server that is the same for everybody."""
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


def forwarding(url: str, session: aiohttp.ClientSession) -> Handler:
    """Passes requests on without the fields that a server may refuse."""

    async def forward(request: web.Request) -> web.StreamResponse:
        data = await request.read()
        if data:
            body = json.loads(data)
            data = json.dumps({k: v for k, v in body.items() if k not in UNKNOWN_FIELDS}).encode()
        headers = {"Content-Type": "application/json"}
        async with session.request(
            request.method, url + request.path, data=data, headers=headers
        ) as reply:
            out = web.StreamResponse(status=reply.status)
            out.content_type = reply.content_type
            await out.prepare(request)
            async for piece in reply.content.iter_any():
                await out.write(piece)
            return out

    return forward


@contextmanager
def serving(url: str | None) -> Iterator[str]:
    """A relay to the server, or the paced one, on a free loopback port, in a thread."""
    loop, ready, stopped = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    address: list[str] = []

    async def serve() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", forwarding(url, session) if url else paced)
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


def questions(count: int, path: Path) -> None:
    """The texts of the task as the peer reads them."""
    lines = []
    for sample in TASKS[TASK].samples("fixture", count):
        ask = sample.request
        assert isinstance(ask, ChatRequest) and isinstance(ask.parts[0], TextPart)
        line: dict[str, Any] = {
            "messages": [{"role": "user", "content": ask.parts[0].text}],
            "seed": ask.seed,
        }
        line |= {"max_tokens": ask.max_tokens, "temperature": 0.0}
        lines.append(json.dumps(line | {"stream_options": {"include_usage": True}}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def with_template(tokenizer: Path, folder: Path) -> Path:
    """A copy of the tokenizer that has a chat template, which the peer counts prompts with."""
    folder.mkdir()
    for name in ("tokenizer.json", "special_tokens_map.json"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    config = json.loads((tokenizer / "tokenizer_config.json").read_text(encoding="utf-8"))
    template = {"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(template | config), encoding="utf-8")
    return folder


def ours(url: str, clients: int, count: int, folder: Path) -> Numbers:
    """One round by this harness."""
    command = ["--task", TASK, "--clients", str(clients), "--samples", str(count), "--url", url]
    command += ["--warm-up", "0", "--out", str(folder), "--dialect", "sglang-omni"]
    _run(["benchmarks.evaluation.evaluate", *command])
    result = json.loads((folder / "run.json").read_text())
    numbers = {k: v["mean"] for k, v in result["summary"][0]["over_repeats"].items()}
    numbers["tpot_ms.mean"] = fmean(
        1e3 * (one["took_s"] - one["ttft_s"]) / (one["tokens"] - 1)
        for one in result["records"]
        if one["tokens"] > 1
    )
    return {name: numbers[name] for name in METRICS}


def theirs(url: str, clients: int, count: int, folder: Path, tokenizer: str, model: str) -> Numbers:
    """One round by SGLang's load generator."""
    folder.mkdir()
    questions(count, folder / "questions.jsonl")
    command = ["--backend", "sglang-oai-chat", "--base-url", url, "--dataset-name", "openai"]
    command += ["--dataset-path", str(folder / "questions.jsonl"), "--num-prompts", str(count)]
    command += ["--max-concurrency", str(clients), "--output-file", str(folder / "out.jsonl")]
    command += ["--model", model, "--tokenizer", tokenizer, "--disable-tqdm"]
    _run(["sglang.benchmark.serving", *command, "--warmup-requests", "0"])
    found = json.loads((folder / "out.jsonl").read_text().splitlines()[-1])
    return {name: float(found[theirs]) for name, theirs in METRICS.items()}


def _run(module: Sequence[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *module], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def compare(rounds: Sequence[tuple[Numbers, Numbers]]) -> Mapping[str, Numbers]:
    """Means over the rounds, and by what part ours differs from the other."""
    result = {}
    for name in METRICS:
        mine, other = (fmean(one[side][name] for one in rounds) for side in (0, 1))
        result[name] = {"ours": mine, "theirs": other, "differs": mine / other - 1}
    return result


def main() -> int:
    """Compare, print and write; fails where a number differs by more than 5 %."""
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
    with serving(arguments.url) as url, tempfile.TemporaryDirectory() as scratch:
        model = served_model(url)
        tokenizer = with_template(arguments.tokenizer, Path(scratch, "tokenizer"))
        for number in range(arguments.rounds + 1):
            folder = Path(scratch, str(number))
            folder.mkdir()
            mine = ours(url, *load, folder / "ours")
            other = theirs(url, *load, folder / "theirs", str(tokenizer), model)
            rounds.append((mine, other))
    found = compare(rounds[1:])
    for name, row in found.items():
        print(
            f"{name:16} ours {row['ours']:9.2f}  theirs {row['theirs']:9.2f}  {row['differs']:+.1%}"
        )
    if arguments.out:
        about = {"environment": fingerprint(), "clients": load[0], "requests": load[1]}
        result = about | {"compared": found, "rounds": rounds[1:]}
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(abs(row["differs"]) <= LIMIT for row in found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
