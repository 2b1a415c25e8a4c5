"""wyoming-openai, Home Assistant's bridge, asked in Wyoming's protocol."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

sys.path.insert(0, str(Path(__file__).parents[2]))
from ci.clients.media import LINE, check_transcript, read_samples

DEADLINE_S = 120
CHUNK = 4096  # bytes
# What its documentation starts it with.
STT_MODELS = {
    "whole": "gpt-transcribe",
    "streaming": "gpt-transcribe",
    "realtime": "gpt-live-transcribe",
}
TTS_MODEL = "gpt-4o-mini-tts"
VOICES = ("alloy", "ash", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@asynccontextmanager
async def bridge(url: str, *more: str) -> AsyncIterator[AsyncTcpClient]:
    """A connection to a bridge that asks the server at `url`."""
    port = free_port()
    command = ["-m", "wyoming_openai", "--uri", f"tcp://127.0.0.1:{port}", "--languages", "en"]
    command += ["--stt-openai-url", url, "--tts-openai-url", url, *more]
    command += ["--stt-openai-key", "none", "--tts-openai-key", "none", "--tts-voices", *VOICES]
    command += ["--tts-models", TTS_MODEL]
    process = await asyncio.create_subprocess_exec(sys.executable, *command)
    try:
        client = AsyncTcpClient("127.0.0.1", port)
        while True:
            try:
                await client.connect()
                break
            except OSError:
                assert process.returncode is None
                await asyncio.sleep(0.1)
        yield client
        await client.disconnect()
    finally:
        process.terminate()
        await process.wait()


async def sound_of(client: AsyncTcpClient, last: str) -> float:
    """Seconds of the sound that comes before the event `last`."""
    seconds = 0.0
    while event := await client.read_event():
        assert event.type != "error", event.data
        if AudioChunk.is_type(event.type):
            seconds += AudioChunk.from_event(event).seconds
        if event.type == last:
            return seconds
    raise AssertionError(f"closed before {last}")


async def describe(client: AsyncTcpClient, stt_model: str) -> None:
    await client.write_event(Describe().event())
    event = await client.read_event()
    assert event is not None
    info = Info.from_event(event)
    models = [model.name for program in info.asr for model in program.models]
    voices = [voice.name for program in info.tts for voice in program.voices]
    print(f"  hears by {', '.join(models)}, {len(voices)} voices")
    assert models == [stt_model]
    assert set(voices) == set(VOICES)


async def synthesize(client: AsyncTcpClient, streamed: bool) -> None:
    voice = SynthesizeVoice(name="alloy")
    if streamed:
        parts = (f"{LINE} ", "It was built a hundred ", "years ago.")
        await client.write_event(SynthesizeStart(voice=voice).event())
        for part in parts:
            await client.write_event(SynthesizeChunk(text=part).event())
        await client.write_event(SynthesizeStop().event())
        seconds = await sound_of(client, SynthesizeStopped().event().type)
    else:
        await client.write_event(Synthesize(text=LINE, voice=voice).event())
        seconds = await sound_of(client, AudioStop().event().type)
    print(f"  heard {seconds:.1f} s")
    assert seconds > 1


async def transcribe(client: AsyncTcpClient) -> None:
    samples, rate = read_samples()
    form = {"rate": rate, "width": 2, "channels": 1}
    await client.write_event(Transcribe(language="en").event())
    await client.write_event(AudioStart(**form).event())
    for begin in range(0, len(samples), CHUNK):
        piece = samples[begin : begin + CHUNK]
        await client.write_event(AudioChunk(audio=piece, **form).event())
    await client.write_event(AudioStop().event())
    while event := await client.read_event():
        if Transcript.is_type(event.type):
            check_transcript(Transcript.from_event(event).text)
            return
    raise AssertionError("closed before a transcript")


async def main(url: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        for way, stt_model in STT_MODELS.items():
            streamed = way != "whole"
            print(f"-- {way}")
            options = [f"--stt-{way}-models" if streamed else "--stt-models", stt_model]
            options += ["--tts-streaming-models", TTS_MODEL] * streamed
            async with bridge(url, *options) as client:
                await describe(client, stt_model)
                await synthesize(client, streamed=streamed)
                await transcribe(client)
    print("ok")


asyncio.run(main(sys.argv[1]))
