"""How fast a realtime session falls silent when its user speaks over an answer.

    sgl-omni serve --version v1 --port 8000 &
    python -m benchmarks.serving.barge_in --url ws://127.0.0.1:8000 --out result.json

Each round has the model speak, and speaks over it at the pace of speech. Times are taken where
events arrive, in milliseconds: `last_sound_ms` from `speech_started` to the last sound that came
after it (0: none came), `stopped_ms` from `speech_started` to `response.done`, which is sent when
the answer's streams in thinker and talker are closed, `heard_ms` from the chunk in which speech
began to `speech_started`, and `engines_idle_ms` from `speech_started` until `/health` counts no
request in an engine, whose heartbeats bring the counts.

A fast server may have made a short answer whole before the speech over it is found. Such a round
shows nothing and is made again; `ended_before` says how many there were.
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
# What the engines count while they work on an answer.
AT_WORK = (("thinker", "running"), ("thinker", "waiting"), ("talker", "active_slots"))

# Of rounds whose answer had ended, so many a round that shows something.
MOST_AGAIN = 2

Row = dict[str, float]


class AnswerEndedError(RuntimeError):
    """The answer was complete before anybody spoke over it."""


async def receive(connection: ClientConnection) -> dict[str, Any]:
    """The next event. Raises `RuntimeError` for an error or an answer that failed, and
    `AnswerEndedError` for one that was not cut."""
    event: dict[str, Any] = json.loads(await connection.recv())
    if event["type"] == "error":
        raise RuntimeError(event["error"]["message"])
    if event["type"] == "response.done" and event["response"]["status"] != "cancelled":
        answer = event["response"]
        ended = answer["status"] in ("completed", "incomplete")
        kind = AnswerEndedError if ended else RuntimeError
        raise kind(f"the answer ended by itself: {answer['status_details']}, {answer['usage']}")
    return event


async def until(connection: ClientConnection, kind: str) -> dict[str, Any]:
    """The next event of a type. Raises as `receive` does."""
    while (event := await receive(connection))["type"] != kind:
        pass
    return event


async def speak(connection: ClientConnection, sound: bytes) -> float:
    """Send sound at the pace of speech; returns when its first chunk left."""
    began = time.monotonic()
    for index, begin in enumerate(range(0, len(sound), CHUNK_BYTES)):
        await asyncio.sleep(began + index * CHUNK_MS / 1000 - time.monotonic())
        audio = base64.b64encode(sound[begin : begin + CHUNK_BYTES]).decode()
        await send_event(connection, "input_audio_buffer.append", audio=audio)
    return began


async def engines_idle(http: httpx.AsyncClient) -> float:
    """The moment at which the engines count no request."""
    while True:
        engines = (await http.get("/health")).json()["engines"]
        if not any(engines[name]["counters"].get(counter) for name, counter in AT_WORK):
            return time.monotonic()
        await asyncio.sleep(POLL_S)


async def measure_round(connection: ClientConnection, http: httpx.AsyncClient) -> Row:
    """Have the model speak, speak over it, and take the times. Raises `AnswerEndedError`."""
    await send_event(connection, "response.create")
    await until(connection, "response.output_audio.delta")
    speaking = asyncio.create_task(speak(connection, pcm16(voice(0.6))))
    try:
        await until(connection, "input_audio_buffer.speech_started")
        started = last_sound = time.monotonic()
        idle = asyncio.create_task(engines_idle(http))
        while (event := await receive(connection))["type"] != "response.done":
            if event["type"] == "response.output_audio.delta":
                last_sound = time.monotonic()
        stopped = time.monotonic()
    finally:
        # Whoever speaks comes to the end, or would send into the next round.
        spoken = await speaking
    return {
        "last_sound_ms": 1000 * (last_sound - started),
        "stopped_ms": 1000 * (stopped - started),
        "heard_ms": 1000 * (started - spoken),
        "engines_idle_ms": 1000 * (await idle - started),
    }


async def measure(arguments: argparse.Namespace) -> tuple[list[Row], int]:
    """The rounds, each in a session of its own, so that none has a longer prompt than another; and
    how many were made again. Raises `AnswerEndedError` where those were too many."""
    rows: list[Row] = []
    again = 0
    async with httpx.AsyncClient(base_url=arguments.url.replace("ws", "http", 1)) as http:
        while len(rows) < arguments.rounds:
            try:
                rows.append(await measure_session(arguments.url, http))
            except AnswerEndedError as ended:
                again += 1
                print(ended)
                if again > MOST_AGAIN * arguments.rounds:
                    raise
            else:
                print(json.dumps({name: round(ms, 1) for name, ms in rows[-1].items()}))
    return rows, again


async def measure_session(url: str, http: httpx.AsyncClient) -> Row:
    """One round in a new session."""
    vad = {"type": "server_vad", "create_response": False}
    session = {"type": "realtime", "audio": {"input": {"turn_detection": vad}}}
    async with connect(f"{url}/v1/realtime", max_size=None, proxy=None) as connection:
        await send_event(connection, "session.update", session=session)
        await speak(connection, pcm16(silence(0.2)))
        return await measure_round(connection, http)


def summary(rows: Sequence[Row]) -> dict[str, Row]:
    """Median and worst of each time."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: {"median": round(statistics.median(times), 2), "worst": round(max(times), 2)}
        for name, times in columns.items()
    }


def parse(command: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="ws://127.0.0.1:8000", help="of a running server")
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--rounds", type=int, default=20)
    return parser.parse_args(command)


def main() -> None:
    """Measure, print and write."""
    arguments = parse()
    rows, again = asyncio.run(measure(arguments))
    result = {
        "environment": fingerprint(),
        "ended_before": again,
        "summary": summary(rows),
        "rows": rows,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result["summary"], indent=1), f"{again} rounds made again")


if __name__ == "__main__":
    main()
