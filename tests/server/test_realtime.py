"""A voice conversation with the running server, by the official client."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai

from tests.entrypoints.realtime.sounds import RATE, pcm16, silence, voice
from tests.server.running import RunningServer, wait_until

SPEECH = pcm16(voice(1.0))
PAUSE = pcm16(silence(0.8))
# From the event that announces speech to the last sound sent, with room for a busy machine; the
# figure itself is measured by `benchmarks.serving.barge_in`.
STOPS_WITHIN_S = 0.5


@asynccontextmanager
async def conversation(server: RunningServer) -> AsyncIterator[Any]:
    address = server.api.replace("http", "ws")
    client = openai.AsyncOpenAI(websocket_base_url=address, api_key="none")
    async with (
        asyncio.timeout(120),
        client.realtime.connect(model="ming-omni") as connection,
    ):
        yield connection


async def say(connection: Any, *sounds: bytes) -> None:
    for sound in sounds:
        audio = base64.b64encode(sound).decode()
        await connection.input_audio_buffer.append(audio=audio)


async def until(connection: Any, kind: str) -> list[Any]:
    events: list[Any] = []
    async for event in connection:
        assert event.type != "error", event.error
        events.append(event)
        if event.type == kind:
            return events
    raise AssertionError(f"closed before {kind}")


async def test_a_spoken_question_is_answered_in_speech_and_written_down(
    server: RunningServer,
) -> None:
    session = {
        "type": "realtime",
        "max_output_tokens": 24,
        "audio": {"input": {"transcription": {}}},
    }
    async with conversation(server) as connection:
        await connection.session.update(session=session)
        await say(connection, SPEECH, PAUSE)
        events = await until(connection, "response.done")
        sound = b"".join(
            base64.b64decode(e.delta) for e in events if e.type == "response.output_audio.delta"
        )
        assert len(sound) > RATE // 2
        response = events[-1].response
        assert response.output[0].content[0].transcript
        assert response.usage.output_token_details.audio_tokens > 0
        # The question was heard: its prompt has a token for every 40 ms of it.
        assert response.usage.input_tokens > 40
        written = await until(connection, "conversation.item.input_audio_transcription.completed")
        assert written[-1].transcript
        # The second turn knows the first, whose prompt is cached.
        await say(connection, SPEECH, PAUSE)
        usage = (await until(connection, "response.done"))[-1].response.usage
        assert usage.input_tokens > response.usage.input_tokens + 40
        assert usage.input_token_details.cached_tokens >= response.usage.input_tokens


async def test_speech_over_an_answer_stops_every_engine(server: RunningServer) -> None:
    async with conversation(server) as connection:
        await connection.session.update(
            session={"type": "realtime", "instructions": "Tell a long story."}
        )
        await connection.response.create()
        await until(connection, "response.output_audio.delta")
        await say(connection, SPEECH)
        started_at, last_sound_at = 0.0, 0.0
        async for event in connection:
            match event.type:
                case "input_audio_buffer.speech_started":
                    started_at = time.monotonic()
                case "response.output_audio.delta":
                    last_sound_at = time.monotonic()
                case "response.done":
                    break
        assert event.response.status_details.reason == "turn_detected"
        assert last_sound_at - started_at < STOPS_WITHIN_S
        # The user is still speaking: nothing else is asked of the engines.
        wait_until(server.is_idle, 5, "the engines at rest")


async def test_a_client_that_breaks_off_leaves_nothing_at_work(server: RunningServer) -> None:
    async with conversation(server) as connection:
        await connection.response.create()
        await until(connection, "response.created")
    wait_until(server.is_idle, 5, "the engines at rest")
