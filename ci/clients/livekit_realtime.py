"""livekit-agents: its OpenAI realtime model, with speech, interruption, truncation and context."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from livekit import rtc
from livekit.agents import llm
from livekit.plugins import openai
from openai.types.beta.realtime.session import InputAudioTranscription, TurnDetection

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.entrypoints.realtime.sounds import RATE, pcm16, silence, voice

CHUNK_S = 0.1
CHUNK = int(RATE * CHUNK_S)  # samples
DEADLINE_S = 120
SHOWN = (
    "generation_created",
    "input_speech_started",
    "input_speech_stopped",
    "input_audio_transcription_completed",
    "error",
)


class Log:
    """Prints the session's events and waits for them."""

    def __init__(self, session: Any) -> None:
        self.seen: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        for name in SHOWN:
            session.on(name, lambda event=None, name=name: self.note(name, event))

    def note(self, name: str, event: Any) -> None:
        print(f"  {name}", flush=True)
        self.seen.put_nowait((name, event))

    async def until(self, wanted: str) -> Any:
        while True:
            name, event = await self.seen.get()
            if name == "error":
                raise AssertionError(event.error)
            if name == wanted:
                return event


async def say(session: Any, seconds: float) -> None:
    sound = pcm16(voice(seconds)) + pcm16(silence(1.0))
    for begin in range(0, len(sound), 2 * CHUNK):
        piece = sound[begin : begin + 2 * CHUNK]
        session.push_audio(rtc.AudioFrame(piece, RATE, 1, len(piece) // 2))
        await asyncio.sleep(CHUNK_S)


async def hear(generation: Any, enough: float) -> tuple[str, float]:
    """The message of a generation: its id, and how many seconds of it came, up to `enough`."""
    async for message in generation.message_stream:
        seconds = 0.0
        async for frame in message.audio_stream:
            assert frame.sample_rate == RATE
            seconds += frame.duration
            if seconds >= enough:
                break
        return message.message_id, seconds
    raise AssertionError("a generation without a message")


async def scenario(session: Any, log: Log) -> None:
    print("-- the context is given, and a reply asked for")
    context = llm.ChatContext()
    context.add_message(role="user", content="Tell me about the river.")
    await session.update_instructions("You are a friendly assistant.")
    await session.update_chat_ctx(context)
    reply = await session.generate_reply(instructions="Answer in one sentence.")
    _, seconds = await hear(reply, 0.3)
    print(f"  heard {seconds:.2f} s")
    print("-- the user speaks over it, and is answered")
    await log.until("generation_created")
    await say(session, 1.0)
    await log.until("input_speech_started")
    answer = await log.until("generation_created")
    name, seconds = await hear(answer, 0.3)
    print(f"  heard {seconds:.2f} s")
    print("-- the answer is interrupted and truncated to what was heard")
    session.interrupt()
    session.truncate(message_id=name, modalities=["audio"], audio_end_ms=200)
    await log.until("input_audio_transcription_completed")
    print("-- the context it kept")
    for item in session.chat_ctx.items:
        print(f"  {item.role}: {item.text_content!r:.50}")
    roles = [item.role for item in session.chat_ctx.items]
    assert roles == ["user", "assistant", "user", "assistant"], roles


async def main(url: str) -> None:
    model = openai.realtime.RealtimeModel(
        base_url=url,
        api_key="none",
        model="ming-omni",
        voice="DB30",
        input_audio_transcription=InputAudioTranscription(model="ming-omni"),
        turn_detection=TurnDetection(type="server_vad", silence_duration_ms=500),
    )
    session = model.session()
    log = Log(session)
    async with asyncio.timeout(DEADLINE_S):
        await scenario(session, log)
        await session.aclose()
        await model.aclose()
    print("ok")


asyncio.run(main(sys.argv[1]))
