"""The official client: chat and speech, whole and streamed, a transcription, and a refusal."""

import asyncio
import base64
import io
import sys
import wave
from pathlib import Path
from typing import Any

from openai import APIStatusError, AsyncOpenAI

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.entrypoints.realtime.sounds import RATE, pcm16, voice

DEADLINE_S = 120
MODEL = "ming-omni"
QUESTION: list[Any] = [{"role": "user", "content": "Tell me about the river."}]
LINE = "The river runs past the old mill."


def seconds_of(wav: bytes, complete: bool = True) -> float:
    """How long a WAV file is, by its samples; by its header as well, where it is `complete`."""
    with wave.open(io.BytesIO(wav)) as file:
        samples = file.readframes(file.getnframes())
        assert not complete or len(samples) == file.getnframes() * 2
        return len(samples) / 2 / file.getframerate()


async def written_chat(client: AsyncOpenAI) -> None:
    print("-- a written answer, whole and streamed")
    asked: dict[str, Any] = {
        "model": MODEL,
        "messages": QUESTION,
        "temperature": 0,
        "max_tokens": 40,
    }
    whole = await client.chat.completions.create(**asked)
    text = whole.choices[0].message.content
    print(f"  answer: {text!r:.60}")
    stream = await client.chat.completions.create(
        **asked, stream=True, stream_options={"include_usage": True}
    )
    pieces, usage = [], None
    async for chunk in stream:
        pieces += [choice.delta.content or "" for choice in chunk.choices]
        usage = chunk.usage or usage
    assert "".join(pieces) == text, pieces
    assert usage is not None
    assert usage.completion_tokens == 40, usage
    print(f"  {usage.completion_tokens} tokens, the same")


async def spoken_chat(client: AsyncOpenAI) -> None:
    print("-- a spoken answer, whole and streamed")
    asked: dict[str, Any] = {
        "model": MODEL,
        "messages": QUESTION,
        "max_tokens": 24,
        "modalities": ["text", "audio"],
    }
    whole = await client.chat.completions.create(**asked, audio={"voice": "DB30", "format": "wav"})
    audio = whole.choices[0].message.audio
    assert audio is not None
    seconds = seconds_of(base64.b64decode(audio.data))
    assert audio.transcript
    assert seconds > 0
    print("  a WAV file and its transcript")
    stream = await client.chat.completions.create(
        **asked, audio={"voice": "DB30", "format": "pcm16"}, stream=True
    )
    heard, transcript = 0, ""
    async for chunk in stream:
        for choice in chunk.choices:
            transcript += choice.delta.content or ""
            if audio_delta := choice.delta.audio:
                heard += len(base64.b64decode(audio_delta.data or ""))
                transcript += audio_delta.transcript or ""
    assert heard > RATE // 10, heard
    assert transcript
    print("  samples and their words")


async def speech(client: AsyncOpenAI) -> None:
    print("-- a line read aloud, as a file, and streamed")
    asked: dict[str, Any] = {"model": MODEL, "voice": "alloy", "input": LINE}
    answer = await client.audio.speech.create(
        **asked, response_format="wav", extra_body={"seed": 1}
    )
    whole = seconds_of(answer.content, complete=False)
    print(f"  {whole:.2f} s")
    heard = 0
    async with client.audio.speech.with_streaming_response.create(
        **asked, response_format="pcm", extra_body={"seed": 1}
    ) as response:
        async for piece in response.iter_bytes():
            heard += len(piece)
    assert abs(heard / 2 / RATE - whole) < 0.01, (heard, whole)
    print(f"  {heard / 2 / RATE:.2f} s in samples of 24 kHz")


async def transcription(client: AsyncOpenAI) -> None:
    print("-- a recording written down")
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(RATE)
        recording.writeframes(pcm16(voice(1.0)))
    heard = await client.audio.transcriptions.create(
        model=MODEL, file=("voice.wav", file.getvalue())
    )
    print(f"  {heard.text!r:.60}")


async def refusals(client: AsyncOpenAI) -> None:
    print("-- what cannot be done is refused")
    for name, fields in (("voice", {"voice": "nobody"}), ("model", {"model": "no-such-model"})):
        try:
            asked = {"model": MODEL, "voice": "DB30", "input": LINE, **fields}
            await client.audio.speech.create(**asked)  # type: ignore[arg-type]
        except APIStatusError as error:
            print(f"  {name}: {error.status_code} {error.code}")
            assert error.status_code in (400, 404)
            assert error.param == name
        else:
            raise AssertionError(f"a wrong {name} was accepted")


async def main(url: str) -> None:
    async with asyncio.timeout(DEADLINE_S), AsyncOpenAI(api_key="none", base_url=url) as client:
        models = [model.id async for model in client.models.list()]
        print(f"models: {models}")
        await written_chat(client)
        await spoken_chat(client)
        await speech(client)
        await transcription(client)
        await refusals(client)
    print("ok")


asyncio.run(main(sys.argv[1]))
