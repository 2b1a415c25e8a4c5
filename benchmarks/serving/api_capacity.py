"""Measure how much the API process carries on one core, without a GPU.

    python -m benchmarks.serving.api_capacity --out benchmarks/results/api_path_cpu.json

The server is that of `sgl-omni serve` with synthetic engines (`benchmarks.serving.api_process`):
HTTP, API keys, admission, pipeline, observability, events and audio formats are the real ones. Its
process is pinned to one core, engines and client to another. Each row asks for a rate and reports
what was delivered: tokens, events and seconds of audio, per second and per second of the API
process's CPU time. The latter depends little on other load on the machine, the former does. So each
row is measured `--rounds` times; the best round is reported, with all of them beside it. On a
shared machine, `api_core` says how much of its core the process was given.

A token that waits for its client is sent with the next; a token that is alone is sent at once. So a
rate of events is a rate of tokens at one event per token.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil

from benchmarks.client.raw import (
    RawLoad,
    StreamPlan,
    arrival_times,
    body_chunks,
    build_post,
    run_plan,
)
from benchmarks.client.texts import TEXTS
from benchmarks.serving.api_process import ANSWER, CHECKPOINT, ROOT, answer_ids
from benchmarks.serving.ready import wait_ready
from benchmarks.synthetic.talker import PATCH_SAMPLES, SAMPLE_RATE
from measurement.environment import fingerprint
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer

Row = dict[str, Any]
Kind = Literal["text", "speech"]

CHAT, SPEECH = "/v1/chat/completions", "/v1/audio/speech"
PATCH_S = PATCH_SAMPLES / SAMPLE_RATE
BYTES_PER_SECOND = 2 * SAMPLE_RATE
PER_CORE = {
    "tokens_per_s": "tokens_per_core_second",
    "events_per_s": "events_per_core_second",
    "audio_s_per_s": "audio_s_per_core_second",
}
TOGETHER = 1.5
START_S, READY_S = 1.5, 120.0


@dataclass(frozen=True)
class Case:
    """What is asked for: `rate` tokens or audio-seconds per second, by so many streams."""

    name: str
    kind: Kind
    streams: int
    rate: float
    must: float

    @property
    def step_s(self) -> float:
        """How long an engine's step takes that gives each stream one token or patch."""
        return self.streams * (1.0 if self.kind == "text" else PATCH_S) / self.rate


CASES = (
    Case("one event a token, at leisure", "text", 64, 2_000, 8_000),
    Case("one event a token", "text", 64, 8_800, 8_000),
    Case("one event a token", "text", 256, 8_800, 8_000),
    Case("waiting tokens together", "text", 64, 24_000, 20_000),
    Case("waiting tokens together", "text", 256, 24_000, 20_000),
    Case("audio, wav", "speech", 64, 1_900, 1_500),
    Case("audio, wav", "speech", 256, 1_900, 1_500),
)


@contextmanager
def api_process(case: Case, arguments: argparse.Namespace) -> Iterator[psutil.Process]:
    """The server, ready and on its core; its engines are on the client's."""
    step = "--step-ms" if case.kind == "text" else "--talker-step-ms"
    command = [
        sys.executable,
        "-m",
        "benchmarks.serving.api_process",
        "--port",
        str(arguments.port),
    ]
    command += [step, str(case.step_s * 1e3), "--patches", str(arguments.patches)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        try:
            wait_ready(f"http://127.0.0.1:{arguments.port}", child, READY_S)
            api = psutil.Process(child.pid)
            for process in api.children(recursive=True):
                hold(process, arguments.client_core)
            hold(api, arguments.api_core)
            yield api
        finally:
            child.terminate()


def hold(process: psutil.Process, core: int) -> None:
    """Keep every thread of a process on one core."""
    for thread in process.threads():
        os.sched_setaffinity(thread.id, {core})


def question(case: Case, arguments: argparse.Namespace) -> bytes:
    """The request that every stream makes."""
    if case.kind == "speech":
        body = {"input": TEXTS[0], "response_format": "wav", "stream_format": "audio"}
        return build_post(SPEECH, json.dumps({"model": "ming-omni", **body}).encode())
    body = {
        "model": "ming-omni",
        "messages": [{"role": "user", "content": TEXTS[0]}],
        "stream": True,
        "max_tokens": arguments.tokens,
    }
    return build_post(CHAT, json.dumps(body).encode())


def measure(case: Case, arguments: argparse.Namespace) -> Row:
    """One round of a case."""
    answer_s = case.step_s * (arguments.tokens if case.kind == "text" else arguments.patches)
    with api_process(case, arguments) as api, client(arguments) as pool:
        start_s = time.monotonic() + START_S
        opens_s = start_s + answer_s
        closes_s = opens_s + arguments.seconds
        asked = question(case, arguments)
        plan = StreamPlan(
            arguments.port, asked, case.streams, start_s, closes_s, answer_s, case.kind == "text"
        )
        future = pool.submit(run_plan, plan)
        spent = [processor_s(api, at_s) for at_s in (opens_s, closes_s)]
        load = future.result()
    window = (opens_s, closes_s)
    seen = text_row(load, window) if case.kind == "text" else audio_row(load, window)
    share = (spent[1] - spent[0]) / arguments.seconds
    seen["api_core"] = round(share, 3)
    seen["client_core"] = round(load.cpu, 3)
    seen["client_lag_p99_ms"] = round(load.lag_p99_s * 1e3, 2)
    for rate, of_a_core in PER_CORE.items():
        if rate in seen:
            seen[of_a_core] = round(seen[rate] / max(share, 1e-9))
    return seen


@contextmanager
def client(arguments: argparse.Namespace) -> Iterator[ProcessPoolExecutor]:
    """A process for the client, on its core and started."""
    core = ({arguments.client_core},)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(os.sched_setaffinity, 0, *core).result()
        yield pool


def processor_s(process: psutil.Process, at_s: float) -> float:
    """The processor time that a process has used by a moment, which is waited for."""
    time.sleep(max(0.0, at_s - time.monotonic()))
    times = process.cpu_times()
    return times.user + times.system


class Expected:
    """What every answer says, and where each token ends in it."""

    def __init__(self, tokens: int) -> None:
        tokenizer, ids = ThinkerTokenizer(CHECKPOINT), answer_ids()
        each = [tokenizer.token_bytes(ids[place % len(ids)]) for place in range(tokens)]
        self.text = b"".join(each).decode("ascii")
        self._ends = list(accumulate(map(len, each)))
        assert self.text.startswith(ANSWER[: len(self.text)])

    def tokens(self, characters: int) -> int:
        """How many tokens so many characters are. Raises `ValueError` within a token."""
        place = bisect_left(self._ends, characters)
        if characters and self._ends[place] != characters:
            raise ValueError(f"a token was cut at {characters}")
        return place + 1 if characters else 0


def text_row(load: RawLoad, window: tuple[float, float]) -> Row:
    """What the streams of a window brought. Raises `ValueError` where an answer is not the one
    that the thinker gave."""
    expected = Expected(8192)
    tokens = events = complete = 0
    first_s: list[float] = []
    for answer in load.answers:
        if not answer.reads:
            continue
        said = 0
        found = body_chunks(bytes(answer.body))
        times = arrival_times(answer, [end for end, _ in found])
        for at, (_, piece) in zip(times, found, strict=True):
            for content in contents(piece):
                if not expected.text.startswith(content, said):
                    raise ValueError(f"not what the thinker said: {content!r} at {said}")
                before, said = expected.tokens(said), said + len(content)
                if not before:
                    first_s.append(at - answer.began_s)
                if window[0] <= at < window[1]:
                    tokens += expected.tokens(said) - before
                    events += 1
        complete += answer.complete
    seconds = window[1] - window[0]
    return {
        "tokens_per_s": round(tokens / seconds),
        "events_per_s": round(events / seconds),
        "tokens_per_event": round(tokens / max(1, events), 3),
        "ttft_ms_median": round(float(np.median(first_s)) * 1e3, 1),
        "whole_answers": complete,
    }


def contents(piece: bytes) -> Iterator[str]:
    """The text of the events in a piece of an answer."""
    for event in piece.split(b"\n\n"):
        if event.startswith(b"data: {"):
            chunk = json.loads(event[len(b"data: ") :])
            if "choices" not in chunk:
                raise ValueError(event.decode())
            for choice in chunk["choices"]:
                if content := choice["delta"].get("content"):
                    yield content


def audio_row(load: RawLoad, window: tuple[float, float]) -> Row:
    """What the listeners of a window got. Raises `ValueError` where a kept answer is not the
    talker's tone."""
    received = sum(
        size for answer in load.answers for at, size in answer.reads if window[0] <= at < window[1]
    )
    for answer in load.answers:
        if answer.body:
            check_tone(bytes(answer.body))
    seconds = window[1] - window[0]
    first_s = [answer.reads[0][0] - answer.began_s for answer in load.answers if answer.reads]
    return {
        "audio_s_per_s": round(received / BYTES_PER_SECOND / seconds, 1),
        "ttfa_ms_median": round(float(np.median(first_s)) * 1e3, 1),
        "whole_answers": sum(answer.complete for answer in load.answers),
    }


def check_tone(body: bytes) -> None:
    """Raises `ValueError` unless an answer is a WAV file of the synthetic talker's tone."""
    data = b"".join(piece for _, piece in body_chunks(body))
    # Between the fades at the ends of a fragment, which the pipeline makes.
    samples = np.frombuffer(data[44 : len(data) - len(data) % 2], "<i2")[:PATCH_SAMPLES]
    tone = 0.25 * np.sin(np.arange(PATCH_SAMPLES) / 16) * 32767
    if not data.startswith(b"RIFF") or np.abs(samples - tone[: len(samples)]).max() > 2:
        raise ValueError("not the talker's tone")


def best(case: Case, rounds: Sequence[Row]) -> Row:
    """The round that carried the most, with what all of them carried."""
    measure_of = {"text": "tokens_per_s", "speech": "audio_s_per_s"}[case.kind]
    if case.name != "waiting tokens together" and case.kind == "text":
        measure_of = "events_per_s"
    row = max(rounds, key=lambda one: one[measure_of])
    about = {"case": case.name, "streams": case.streams, "asked_per_s": case.rate}
    # Where tokens went out together their events tell nothing of what one alone costs.
    alone = measure_of != "events_per_s" or row["tokens_per_event"] < TOGETHER
    bound = {
        measure_of: case.must,
        "carried": row[measure_of] >= case.must if case.rate >= case.must else None,
        "by_processor_time": row[PER_CORE[measure_of]] >= case.must if alone else None,
    }
    return {**about, **row, "bound": bound, "rounds": list(rounds)}


def parse(command: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--cases", type=int, nargs="*", default=list(range(len(CASES))))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a round's window")
    parser.add_argument("--tokens", type=int, default=256, help="of an answer")
    parser.add_argument("--patches", type=int, default=20, help="of a speech, 320 ms each")
    parser.add_argument("--port", type=int, default=8802)
    parser.add_argument("--api-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    return parser.parse_args(command)


def main() -> int:
    """Measure, print and write; fails where a bound does not hold."""
    arguments = parse()
    rows = []
    for case in (CASES[number] for number in arguments.cases):
        rounds = []
        for _ in range(arguments.rounds):
            rounds.append(measure(case, arguments))
            print(case.name, case.streams, json.dumps(rounds[-1]), flush=True)
        rows.append(best(case, rounds))
    chosen = {name: value for name, value in vars(arguments).items() if name != "out"}
    about = fingerprint() | {"load_average": os.getloadavg(), "cores": os.cpu_count()}
    result = {"environment": about, "arguments": chosen, "rows": rows}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["bound"]["carried"] is not False for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
