"""openai-agents: a realtime session of its runner, with speech, interruption and history."""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from agents.realtime import RealtimeAgent, RealtimeRunner

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.entrypoints.realtime.sounds import RATE, pcm16, silence, voice

CHUNK = RATE // 10 * 2  # bytes of 0.1 s
DEADLINE_S = 120


def settings(url: str) -> Any:
    return {
        "url": f"{url.replace('http', 'ws')}/realtime?model=ming-omni",
        "api_key": "none",
        "initial_model_settings": {
            "model_name": "ming-omni",
            "voice": "DB30",
            "max_output_tokens": 300,
            "input_audio_transcription": {"model": "ming-omni"},
            "turn_detection": {"type": "server_vad", "interrupt_response": True},
        },
    }


async def say(session: Any, seconds: float) -> None:
    sound = pcm16(voice(seconds)) + pcm16(silence(1.0))
    for begin in range(0, len(sound), CHUNK):
        await session.send_audio(sound[begin : begin + CHUNK])
        await asyncio.sleep(0.1)


class Log:
    """Prints the session's events; audio is counted."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.audio = 0
        self.raw: Counter[str] = Counter()

    async def until(self, kind: str) -> Any:
        async for event in self.session:
            if event.type == "error":
                raise AssertionError(event.error)
            if event.type == "audio":
                self.audio += len(event.audio.data)
            elif event.type == "raw_model_event":
                self.raw[event.data.type] += 1
            else:
                print(f"  {event.type}", flush=True)
            if event.type == kind:
                return event
        raise AssertionError(f"closed before {kind}")


async def main(url: str) -> None:
    agent = RealtimeAgent(name="Assistant", instructions="You are a friendly assistant.")
    runner = RealtimeRunner(agent)
    async with asyncio.timeout(DEADLINE_S), await runner.run(model_config=settings(url)) as session:
        log = Log(session)
        print("-- a written question, answered in speech")
        await session.send_message("Tell me about the river.")
        await log.until("audio_end")
        print(f"  {log.audio} bytes of audio")
        assert log.audio > RATE
        await log.until("agent_end")
        print("-- a spoken question, answered; the user speaks over the answer")
        await say(session, 1.0)
        await log.until("audio")
        speaking = asyncio.create_task(say(session, 0.6))
        await log.until("audio_interrupted")
        await speaking
        await log.until("agent_start")
        await session.interrupt()
        await asyncio.sleep(2)
        print("-- the history it kept")
        for item in session._history:
            part = item.content[0] if item.content else None
            text = getattr(part, "transcript", None) or getattr(part, "text", None)
            print(f"  {item.role}, {item.status}: {text!r:.50}")
        print(f"  raw events: {dict(sorted(log.raw.items()))}")
        assert [item.role for item in session._history][:3] == ["user", "assistant", "user"]
    print("ok")


asyncio.run(main(sys.argv[1]))
