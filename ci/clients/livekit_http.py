"""livekit-agents: its OpenAI text to speech, as it comes and with plain samples."""

import asyncio
import sys
from typing import Any

from livekit.plugins import openai

DEADLINE_S = 120
LINES = ("The river runs past the old mill.", "It was built a hundred years ago.")


async def speak(client: Any, line: str) -> float:
    """Seconds of a line that were heard."""
    seconds = 0.0
    async with client.synthesize(line) as stream:
        async for event in stream:
            seconds += event.frame.duration
    assert seconds > 0.2, seconds
    return seconds


async def main(url: str) -> None:
    given = {"base_url": url, "api_key": "none", "model": "ming-omni", "voice": "DB30"}
    async with asyncio.timeout(DEADLINE_S):
        for form in ("mp3", "wav", "pcm"):
            print(f"-- {form}")
            client = openai.TTS(**given, response_format=form)
            for line in LINES:
                print(f"  heard {await speak(client, line):.1f} s")
            await client.aclose()
        print("-- slower, in a manner")
        client = openai.TTS(**given, speed=0.8, instructions="Speak calmly.")
        print(f"  heard {await speak(client, LINES[0]):.1f} s")
        await client.aclose()
    print("ok")


asyncio.run(main(sys.argv[1]))
