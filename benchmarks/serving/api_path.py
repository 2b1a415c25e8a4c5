"""Measure the API process's CPU time per chunk of speech, stage by stage, without a GPU.

    python -m benchmarks.serving.api_path --listeners 300 --out result.json

A synthetic talker in a real engine process makes chunks of 320 ms. Listeners consume them in real
time: first inside the process (transport, pipeline, encoding), then over HTTP from another process.
Every row has CPU time per chunk, of the API process and of the engine's.
"""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from benchmarks.client.load import Load, run_load
from benchmarks.client.speech import SpeechQuery
from benchmarks.client.texts import TEXTS
from benchmarks.synthetic.server import SyntheticBackend, build_server
from benchmarks.synthetic.talker import PATCH_SAMPLES, SAMPLE_RATE, VOICE, SyntheticSettings
from measurement.environment import fingerprint
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.speech.contract import TalkerRequest
from sglang_omni.entrypoints.http.routes.speech import stream_audio
from sglang_omni.entrypoints.http.transport.uvicorn_server import freeze_gc, run
from sglang_omni.media.encode import OutputAudioEncoder
from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import SpeechRequest, Voice
from sglang_omni.pipeline.speech import Speaker, speak
from sglang_omni.protocol.audio import AudioFormat

PORT = 8801
PATCH_S = PATCH_SAMPLES / SAMPLE_RATE
SPEECH_TEXT = MingSpeechText()
PCM_RATE = 24_000

Row = dict[str, Any]
Stage = Callable[[EngineProcess, int], AsyncGenerator[Any, None]]


def read_transport(talker: EngineProcess, number: int) -> AsyncGenerator[Any, None]:
    """Yield the chunks that the engine's client receives."""
    return talker.submit(TalkerRequest(TEXTS[number % len(TEXTS)], VOICE, number))


def read_pipeline(talker: EngineProcess, number: int) -> AsyncGenerator[Any, None]:
    """Yield the events of the pipeline."""
    voice = Voice(VOICE, number)
    speaker = Speaker(talker, SPEECH_TEXT, PATCH_S, voice.name, voice.seed, SAMPLE_RATE)
    return speak(speaker, SpeechRequest(str(number), TEXTS[number % len(TEXTS)], voice))


def read_encoded(
    audio_format: AudioFormat, rate: int, talker: EngineProcess, number: int
) -> AsyncGenerator[Any, None]:
    """Yield the pieces of the response body."""
    encoder = OutputAudioEncoder(audio_format, SAMPLE_RATE, rate, streaming=True)
    return stream_audio(require_finished(read_pipeline(talker, number)), encoder)


STAGES: dict[str, Stage] = {
    "transport": read_transport,
    "pipeline": read_pipeline,
    "wav": partial(read_encoded, "wav", SAMPLE_RATE),
    "pcm 24 kHz": partial(read_encoded, "pcm", PCM_RATE),
}


@asynccontextmanager
async def measure_cpu(backend: SyntheticBackend, row: Row) -> AsyncIterator[None]:
    """Add the CPU time of both processes, per chunk of the engine, to `row`."""

    async def read_counters() -> tuple[float, float, float, float]:
        await asyncio.sleep(0.6)  # Counters are up to half a second old.
        assert backend.talker.pid is not None
        engine_cpu = psutil.Process(backend.talker.pid).cpu_times()
        chunks = backend.talker.health.counters["patches"]
        return time.process_time(), engine_cpu.user + engine_cpu.system, chunks, time.monotonic()

    before = await read_counters()
    yield
    api_s, engine_s, chunks, took_s = (
        b - a for a, b in zip(before, await read_counters(), strict=True)
    )
    row["chunks_per_s"] = round(chunks / took_s)
    row["api_us"] = round(api_s / chunks * 1e6)
    row["engine_us"] = round(engine_s / chunks * 1e6)
    row["api_core"] = round(api_s / took_s, 3)


async def run_listeners(talker: EngineProcess, stage: Stage, arguments: argparse.Namespace) -> None:
    """Consume requests one after the other in each listener, in real time."""
    listeners, period_s = arguments.listeners, arguments.patches * PATCH_S

    async def listener(index: int) -> None:
        await asyncio.sleep(index / listeners * period_s)
        for round_number in range(round(arguments.seconds / period_s)):
            started_at = time.monotonic()
            async with aclosing(stage(talker, index + round_number * listeners)) as pieces:
                async for _ in pieces:
                    pass
            await asyncio.sleep(started_at + period_s - time.monotonic())

    await asyncio.gather(*(listener(index) for index in range(listeners)))


async def measure_stage(name: str, arguments: argparse.Namespace) -> Row:
    """Measure one stage inside this process."""
    row: Row = {"stage": name}
    async with running_engine(arguments) as backend, measure_cpu(backend, row):
        await run_listeners(backend.talker, STAGES[name], arguments)
    return row


async def measure_http(audio_format: AudioFormat, arguments: argparse.Namespace) -> Row:
    """Measure the whole path, with the listeners in another process."""
    row: Row = {"stage": f"http {audio_format}"}
    url = f"http://127.0.0.1:{PORT}"
    query = SpeechQuery(url, SyntheticBackend.model, audio_format=audio_format)
    load = Load(
        "listeners",
        query,
        arguments.listeners,
        arguments.seconds,
        ramp_s=arguments.patches * PATCH_S,
    )
    async with (
        running_engine(arguments) as backend,
        http_server(backend),
        measure_cpu(backend, row),
    ):
        result = await asyncio.to_thread(run_load, load, 1)
    row["failed"] = sum(record.error is not None for record in result.records)
    row["underruns"] = sum(record.underruns for record in result.records)
    return row


@asynccontextmanager
async def running_engine(arguments: argparse.Namespace) -> AsyncIterator[SyntheticBackend]:
    """Run a synthetic talker."""
    settings = SyntheticSettings(
        step_ms=arguments.step_ms, stream_ms=arguments.stream_ms, patches=arguments.patches
    )
    backend = SyntheticBackend(settings)
    await backend.talker.start()
    try:
        yield backend
    finally:
        await backend.talker.stop()


@asynccontextmanager
async def http_server(backend: SyntheticBackend) -> AsyncIterator[None]:
    """Run the HTTP server on this event loop."""
    web = build_server(backend, PORT)
    task = asyncio.create_task(web.serve())
    try:
        yield
    finally:
        web.should_exit = True
        await task


async def measure(arguments: argparse.Namespace) -> list[Row]:
    """Measure every stage, one after the other."""
    rows = []
    for name in arguments.stages:
        rows.append(await measure_stage(name, arguments))
        print(json.dumps(rows[-1]), flush=True)
    for audio_format in ("wav", "pcm"):
        rows.append(await measure_http(audio_format, arguments))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def parse_arguments(command: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--stages", nargs="*", default=list(STAGES), choices=list(STAGES))
    parser.add_argument("--listeners", type=int, default=300)
    parser.add_argument("--patches", type=int, default=20, help="of an answer, 320 ms each")
    parser.add_argument("--seconds", type=float, default=12.9)
    parser.add_argument("--step-ms", type=float, default=25.0, help="of an empty step")
    parser.add_argument("--stream-ms", type=float, default=0.1, help="of each stream in it")
    return parser.parse_args(command)


def main() -> None:
    """Measure, print and write."""
    arguments = parse_arguments()
    SPEECH_TEXT.warm_up()
    freeze_gc()
    rows = run(measure(arguments))
    recorded_arguments = {name: value for name, value in vars(arguments).items() if name != "out"}
    result = {"environment": fingerprint(), "arguments": recorded_arguments, "rows": rows}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
