"""The official client: a written turn, a spoken turn, and an answer that is spoken over."""

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.entrypoints.realtime.sounds import RATE, pcm16, silence, voice

CHUNK = RATE // 10 * 2  # bytes of 0.1 s
DEADLINE_S = 120


class Conversation:
    """Prints what happens, deltas counted rather than shown."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.deltas: dict[str, int] = {}

    async def until(self, kind: str) -> Any:
        """The next event of this kind."""
        async for event in self.connection:
            self.show(event)
            assert event.type != "error", event.error
            if event.type == kind:
                return event
        raise AssertionError(f"closed before {kind}")

    def show(self, event: Any) -> None:
        if event.type.endswith(".delta"):
            self.deltas[event.type] = self.deltas.get(event.type, 0) + 1
            return
        counted = "".join(f"  {kind} x {count}\n" for kind, count in self.deltas.items())
        self.deltas.clear()
        print(f"{counted}  {event.type}", flush=True)

    async def say(self, seconds: float) -> None:
        """Speak at the pace of speech, then be silent for a second."""
        sound = pcm16(voice(seconds)) + pcm16(silence(1.0))
        for begin in range(0, len(sound), CHUNK):
            audio = base64.b64encode(sound[begin : begin + CHUNK]).decode()
            await self.connection.input_audio_buffer.append(audio=audio)
            await asyncio.sleep(CHUNK / 2 / RATE)


async def written_turn(talk: Conversation) -> None:
    print("-- a written question, a written answer")
    await talk.connection.session.update(
        session={"type": "realtime", "output_modalities": ["text"], "max_output_tokens": 40}
    )
    await talk.until("session.updated")
    await talk.connection.conversation.item.create(
        item={
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Tell me about the river."}],
        }
    )
    await talk.connection.response.create()
    done = await talk.until("response.done")
    assert done.response.output, done.response.status_details
    text = done.response.output[0].content[0].text
    print(f"  answer: {text!r:.60}")
    assert done.response.status in ("completed", "incomplete"), done.response.status
    assert text


async def spoken_turn(talk: Conversation) -> None:
    print("-- a spoken question, a spoken answer, the question in writing afterwards")
    await talk.connection.session.update(
        session={
            "type": "realtime",
            "output_modalities": ["audio"],
            "max_output_tokens": 40,
            "audio": {"input": {"transcription": {"model": "whisper-1"}}},
        }
    )
    await talk.until("session.updated")
    speaking = asyncio.create_task(talk.say(1.0))
    await talk.until("input_audio_buffer.speech_stopped")
    done = await talk.until("response.done")
    transcript = done.response.output[0].content[0].transcript
    print(f"  answer: {transcript!r:.60}")
    assert done.response.usage.output_token_details.audio_tokens > 0
    heard = await talk.until("conversation.item.input_audio_transcription.completed")
    print(f"  heard: {heard.transcript!r:.60}")
    await speaking


async def interruption(talk: Conversation) -> None:
    print("-- an answer that the user speaks over")
    await talk.connection.session.update(session={"type": "realtime", "max_output_tokens": 400})
    await talk.until("session.updated")
    await talk.connection.response.create()
    await talk.until("response.output_audio.delta")
    speaking = asyncio.create_task(talk.say(1.0))
    await talk.until("input_audio_buffer.speech_started")
    done = await talk.until("response.done")
    details = done.response.status_details
    print(f"  {done.response.status}: {details.reason}")
    assert (done.response.status, details.reason) == ("cancelled", "turn_detected")
    item = done.response.output[0]
    await talk.connection.conversation.item.truncate(
        item_id=item.id, content_index=0, audio_end_ms=10
    )
    await talk.until("conversation.item.truncated")
    await talk.connection.conversation.item.retrieve(item_id=item.id)
    kept = await talk.until("conversation.item.retrieved")
    print(f"  kept: {kept.item.content[0].transcript!r}, {kept.item.status}")
    await talk.until("response.created")
    await talk.connection.response.cancel()
    done = await talk.until("response.done")
    assert done.response.status_details.reason == "client_cancelled"
    await speaking


async def main(url: str) -> None:
    client = AsyncOpenAI(base_url=url, api_key="none")
    async with client.realtime.connect(model="ming-omni") as connection:
        talk = Conversation(connection)
        await talk.until("conversation.created")
        async with asyncio.timeout(DEADLINE_S):
            await written_turn(talk)
            await spoken_turn(talk)
            await interruption(talk)
    print("ok")


asyncio.run(main(sys.argv[1]))
