"""Measure how fast a realtime session stops speaking when its user speaks over an answer.

    sgl-omni serve --version v1 --port 8000 &
    python -m benchmarks.serving.barge_in --url ws://127.0.0.1:8000 --out result.json

In each round the model speaks, and speech is sent over it in real time. Times are taken where
events arrive, in milliseconds: `last_sound_ms` from `speech_started` to the last audio after it (0:
none came); `stopped_ms` from `speech_started` to `response.done`, which is sent when the answer's
streams in thinker and talker are closed; `heard_ms` from the chunk in which speech began to
`speech_started`; and `engines_idle_ms` from `speech_started` until `/health` counts no request in
an engine (heartbeats bring the counts).

A fast server may complete a short answer before the speech over it is detected. Such a round shows
nothing and is repeated; `ended_before` is their number.
"""

import argparse
import asyncio
import base64
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

from measurement.environment import fingerprint
from measurement.openai_api import send_event
from tests.entrypoints.realtime.sounds import RATE, pcm16, silence, voice

CHUNK_MS = 20
CHUNK_BYTES = RATE * CHUNK_MS // 1000 * 2
POLL_S = 0.005
# The engines' counters that are not zero during an answer.
BUSY_COUNTERS = (("thinker", "running"), ("thinker", "waiting"), ("talker", "active_slots"))

# Repeated rounds allowed for each measured round.
MAX_RETRIES = 2

Row = dict[str, float]


class AnswerEndedError(RuntimeError):
    """The answer was complete before the speech over it was detected."""


async def receive_event(connection: ClientConnection) -> dict[str, Any]:
    """Return the next event.

    Raises:
        RuntimeError: The session reports an error, or the answer failed.
        AnswerEndedError: The answer ended without being cancelled.
    """
    event: dict[str, Any] = json.loads(await connection.recv())
    if event["type"] == "error":
        raise RuntimeError(event["error"]["message"])
    if event["type"] == "response.done" and event["response"]["status"] != "cancelled":
        response = event["response"]
        has_ended = response["status"] in ("completed", "incomplete")
        error_type = AnswerEndedError if has_ended else RuntimeError
        raise error_type(
            f"the answer ended by itself: {response['status_details']}, {response['usage']}"
        )
    return event


async def wait_for_event(connection: ClientConnection, event_type: str) -> dict[str, Any]:
    """Return the next event of a type. Raises as `receive_event` does."""
    while (event := await receive_event(connection))["type"] != event_type:
        pass
    return event


async def send_speech(connection: ClientConnection, sound: bytes) -> float:
    """Send sound in real time. Returns when its first chunk was sent."""
    started_at = time.monotonic()
    for index, start in enumerate(range(0, len(sound), CHUNK_BYTES)):
        await asyncio.sleep(started_at + index * CHUNK_MS / 1000 - time.monotonic())
        audio = base64.b64encode(sound[start : start + CHUNK_BYTES]).decode()
        await send_event(connection, "input_audio_buffer.append", audio=audio)
    return started_at


async def wait_until_idle(http: httpx.AsyncClient) -> float:
    """Wait until the engines count no request, and return when."""
    while True:
        engines = (await http.get("/health")).json()["engines"]
        if not any(engines[name]["counters"].get(counter) for name, counter in BUSY_COUNTERS):
            return time.monotonic()
        await asyncio.sleep(POLL_S)


async def measure_round(connection: ClientConnection, http: httpx.AsyncClient) -> Row:
    """Let the model speak, speak over it, and take the times. Raises `AnswerEndedError`."""
    await send_event(connection, "response.create")
    await wait_for_event(connection, "response.output_audio.delta")
    speech_task = asyncio.create_task(send_speech(connection, pcm16(voice(0.6))))
    try:
        await wait_for_event(connection, "input_audio_buffer.speech_started")
        speech_started_at = last_audio_at = time.monotonic()
        idle_task = asyncio.create_task(wait_until_idle(http))
        while (event := await receive_event(connection))["type"] != "response.done":
            if event["type"] == "response.output_audio.delta":
                last_audio_at = time.monotonic()
        stopped_at = time.monotonic()
    finally:
        # Let the speech end, so that it is not sent into the next round.
        sent_at = await speech_task
    return {
        "last_sound_ms": 1000 * (last_audio_at - speech_started_at),
        "stopped_ms": 1000 * (stopped_at - speech_started_at),
        "heard_ms": 1000 * (speech_started_at - sent_at),
        "engines_idle_ms": 1000 * (await idle_task - speech_started_at),
    }


async def measure(arguments: argparse.Namespace) -> tuple[list[Row], int]:
    """Measure the rounds. Returns their rows, and how many rounds were repeated.

    Each round has a session of its own, so that no prompt is longer than another.

    Raises:
        AnswerEndedError: Too many rounds had to be repeated.
    """
    rows: list[Row] = []
    num_repeated = 0
    async with httpx.AsyncClient(base_url=arguments.url.replace("ws", "http", 1)) as http:
        while len(rows) < arguments.rounds:
            try:
                rows.append(await measure_session(arguments.url, http))
            except AnswerEndedError as error:
                num_repeated += 1
                print(error)
                if num_repeated > MAX_RETRIES * arguments.rounds:
                    raise
            else:
                print(json.dumps({name: round(ms, 1) for name, ms in rows[-1].items()}))
    return rows, num_repeated


async def measure_session(url: str, http: httpx.AsyncClient) -> Row:
    """Measure one round in a new session."""
    vad = {"type": "server_vad", "create_response": False}
    session = {"type": "realtime", "audio": {"input": {"turn_detection": vad}}}
    async with connect(f"{url}/v1/realtime", max_size=None, proxy=None) as connection:
        await send_event(connection, "session.update", session=session)
        await send_speech(connection, pcm16(silence(0.2)))
        return await measure_round(connection, http)


def summarise(rows: Sequence[Row]) -> dict[str, Row]:
    """Return the median and the maximum of each time."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: {"median": round(statistics.median(times), 2), "worst": round(max(times), 2)}
        for name, times in columns.items()
    }


def parse_arguments(command: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="ws://127.0.0.1:8000", help="of a running server")
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--rounds", type=int, default=20)
    return parser.parse_args(command)


def main() -> None:
    """Measure, print and write."""
    arguments = parse_arguments()
    rows, num_repeated = asyncio.run(measure(arguments))
    result = {
        "environment": fingerprint(),
        "ended_before": num_repeated,
        "summary": summarise(rows),
        "rows": rows,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result["summary"], indent=1), f"{num_repeated} rounds repeated")


if __name__ == "__main__":
    main()
