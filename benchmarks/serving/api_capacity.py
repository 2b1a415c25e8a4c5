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
PER_CPU_SECOND = {
    "tokens_per_s": "tokens_per_core_second",
    "events_per_s": "events_per_core_second",
    "audio_s_per_s": "audio_s_per_core_second",
}
BATCHED_TOKENS = 1.5
START_S, READY_S = 1.5, 120.0


@dataclass(frozen=True)
class Case:
    """The requested rate: `rate` tokens or audio-seconds per second, over `streams` streams."""

    name: str
    kind: Kind
    streams: int
    rate: float
    must: float

    @property
    def step_s(self) -> float:
        """Return the time of an engine's step, which gives each stream one token or patch."""
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
    """Start the server pinned to its core, and wait for it.

    Its engines run on the client's core.
    """
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
                pin_to_core(process, arguments.client_core)
            pin_to_core(api, arguments.api_core)
            yield api
        finally:
            child.terminate()


def pin_to_core(process: psutil.Process, core: int) -> None:
    """Pin every thread of a process to one core."""
    for thread in process.threads():
        os.sched_setaffinity(thread.id, {core})


def build_request(case: Case, arguments: argparse.Namespace) -> bytes:
    """Build the request that every stream sends."""
    if case.kind == "speech":
        body = {"input": TEXTS[0], "response_format": "wav", "stream_format": "audio"}
        return build_post(SPEECH, json.dumps({"model": "ming-omni", **body}).encode())
    chat = {
        "model": "ming-omni",
        "messages": [{"role": "user", "content": TEXTS[0]}],
        "stream": True,
        "max_tokens": arguments.tokens,
    }
    return build_post(CHAT, json.dumps(chat).encode())


def measure_round(case: Case, arguments: argparse.Namespace) -> Row:
    """Measure one round of a case."""
    answer_s = case.step_s * (arguments.tokens if case.kind == "text" else arguments.patches)
    with api_process(case, arguments) as api, client_process(arguments) as pool:
        start_s = time.monotonic() + START_S
        window_start_s = start_s + answer_s
        window_end_s = window_start_s + arguments.seconds
        request = build_request(case, arguments)
        plan = StreamPlan(
            arguments.port,
            request,
            case.streams,
            start_s,
            window_end_s,
            answer_s,
            case.kind == "text",
        )
        future = pool.submit(run_plan, plan)
        cpu_times = [cpu_time_at(api, at_s) for at_s in (window_start_s, window_end_s)]
        load = future.result()
    window = (window_start_s, window_end_s)
    row = summarise_text(load, window) if case.kind == "text" else summarise_audio(load, window)
    cpu_share = (cpu_times[1] - cpu_times[0]) / arguments.seconds
    row["api_core"] = round(cpu_share, 3)
    row["client_core"] = round(load.cpu, 3)
    row["client_lag_p99_ms"] = round(load.lag_p99_s * 1e3, 2)
    for rate, per_cpu_second in PER_CPU_SECOND.items():
        if rate in row:
            row[per_cpu_second] = round(row[rate] / max(cpu_share, 1e-9))
    return row


@contextmanager
def client_process(arguments: argparse.Namespace) -> Iterator[ProcessPoolExecutor]:
    """Start a process for the client, pinned to its core."""
    core = ({arguments.client_core},)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(os.sched_setaffinity, 0, *core).result()
        yield pool


def cpu_time_at(process: psutil.Process, at_s: float) -> float:
    """Wait until `at_s`, and return the CPU seconds that the process has used."""
    time.sleep(max(0.0, at_s - time.monotonic()))
    times = process.cpu_times()
    return times.user + times.system


class ExpectedAnswer:
    """The text of every answer, and the end of each token in it."""

    def __init__(self, tokens: int) -> None:
        tokenizer, ids = ThinkerTokenizer(CHECKPOINT), answer_ids()
        token_texts = [tokenizer.token_bytes(ids[index % len(ids)]) for index in range(tokens)]
        self.text = b"".join(token_texts).decode("ascii")
        self._ends = list(accumulate(map(len, token_texts)))
        assert self.text.startswith(ANSWER[: len(self.text)])

    def tokens(self, characters: int) -> int:
        """Return the number of tokens in this many characters.

        Raises `ValueError` within a token.
        """
        index = bisect_left(self._ends, characters)
        if characters and self._ends[index] != characters:
            raise ValueError(f"a token was cut at {characters}")
        return index + 1 if characters else 0


def summarise_text(load: RawLoad, window: tuple[float, float]) -> Row:
    """Summarise the text that the streams received within a window.

    Raises:
        ValueError: An answer differs from the thinker's.
    """
    expected = ExpectedAnswer(8192)
    tokens = events = complete = 0
    first_s: list[float] = []
    for answer in load.answers:
        if not answer.reads:
            continue
        received = 0
        chunks = body_chunks(bytes(answer.body))
        times = arrival_times(answer, [end for end, _ in chunks])
        for arrived_at, (_, chunk) in zip(times, chunks, strict=True):
            for content in event_texts(chunk):
                if not expected.text.startswith(content, received):
                    raise ValueError(
                        f"the answer differs from the thinker's at {received}: {content!r}"
                    )
                tokens_before, received = expected.tokens(received), received + len(content)
                if not tokens_before:
                    first_s.append(arrived_at - answer.began_s)
                if window[0] <= arrived_at < window[1]:
                    tokens += expected.tokens(received) - tokens_before
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


def event_texts(data: bytes) -> Iterator[str]:
    """Yield the texts of the events in a chunk of an answer."""
    for event in data.split(b"\n\n"):
        if event.startswith(b"data: {"):
            chunk = json.loads(event[len(b"data: ") :])
            if "choices" not in chunk:
                raise ValueError(event.decode())
            for choice in chunk["choices"]:
                if content := choice["delta"].get("content"):
                    yield content


def summarise_audio(load: RawLoad, window: tuple[float, float]) -> Row:
    """Summarise the audio that the listeners received within a window.

    Raises:
        ValueError: A kept answer is not the talker's tone.
    """
    received = sum(
        size
        for answer in load.answers
        for read_at, size in answer.reads
        if window[0] <= read_at < window[1]
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
    """Raise `ValueError` unless an answer is a WAV file of the synthetic talker's tone."""
    data = b"".join(chunk for _, chunk in body_chunks(body))
    # The first patch only: the pipeline fades the end of a fragment.
    samples = np.frombuffer(data[44 : len(data) - len(data) % 2], "<i2")[:PATCH_SAMPLES]
    tone = 0.25 * np.sin(np.arange(PATCH_SAMPLES) / 16) * 32767
    if not data.startswith(b"RIFF") or np.abs(samples - tone[: len(samples)]).max() > 2:
        raise ValueError("not the talker's tone")


def select_best(case: Case, rounds: Sequence[Row]) -> Row:
    """Return the round with the highest rate, with the rows of all rounds."""
    metric = {"text": "tokens_per_s", "speech": "audio_s_per_s"}[case.kind]
    if case.name != "waiting tokens together" and case.kind == "text":
        metric = "events_per_s"
    row = max(rounds, key=lambda round_row: round_row[metric])
    about = {"case": case.name, "streams": case.streams, "asked_per_s": case.rate}
    # Where tokens were sent together, events do not show the cost of a single token.
    is_per_event = metric != "events_per_s" or row["tokens_per_event"] < BATCHED_TOKENS
    bound = {
        metric: case.must,
        "carried": row[metric] >= case.must if case.rate >= case.must else None,
        "by_processor_time": row[PER_CPU_SECOND[metric]] >= case.must if is_per_event else None,
    }
    return {**about, **row, "bound": bound, "rounds": list(rounds)}


def parse_arguments(command: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
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
    """Measure, print and write. Return 1 if a bound does not hold."""
    arguments = parse_arguments()
    rows = []
    for case in (CASES[number] for number in arguments.cases):
        rounds = []
        for _ in range(arguments.rounds):
            rounds.append(measure_round(case, arguments))
            print(case.name, case.streams, json.dumps(rounds[-1]), flush=True)
        rows.append(select_best(case, rounds))
    recorded_arguments = {name: value for name, value in vars(arguments).items() if name != "out"}
    about = fingerprint() | {"load_average": os.getloadavg(), "cores": os.cpu_count()}
    result = {"environment": about, "arguments": recorded_arguments, "rows": rows}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["bound"]["carried"] is not False for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
