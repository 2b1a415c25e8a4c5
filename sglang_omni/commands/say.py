"""`sgl-omni say`: a text into a WAV file, with the speech engine alone."""

import asyncio
from contextlib import aclosing
from pathlib import Path

from sglang_omni.commands.checkpoint import find_checkpoint
from sglang_omni.commands.progress import progress
from sglang_omni.config import Config
from sglang_omni.engine.process import EngineProcess
from sglang_omni.errors import StartupError, UnknownVoice
from sglang_omni.media.encode import AudioEncoder
from sglang_omni.pipeline.request import AudioDelta, SpeechRequest, Voice
from sglang_omni.pipeline.speech import Speaker, speak
from sglang_omni.specs import talker_spec
from sglang_omni.talker.contract import TalkerInfo


def say(config: Config, text: str, output: Path, seed: int) -> int:
    """Speak `text` into the WAV file `output`; returns the exit status. Raises `OmniError`."""
    if not output.absolute().parent.is_dir():
        raise StartupError(f"cannot write {output}: there is no folder {output.parent}")
    checkpoint = find_checkpoint(config.model_path)
    process = EngineProcess(talker_spec(config, checkpoint))
    data = asyncio.run(_synthesise(process, text, config.voice, seed))
    output.write_bytes(data)
    print(f"wrote {output}")
    return 0


async def _synthesise(process: EngineProcess, text: str, voice: str | None, seed: int) -> bytes:
    """The bytes of a complete WAV file."""
    try:
        async with progress({"talker": process}):
            await process.start()
        info: TalkerInfo = process.health.info
        encoder = AudioEncoder("wav", info.sample_rate, info.sample_rate, streaming=False)
        name = _choose(voice, info)
        request = SpeechRequest("say", text, Voice(name, seed))
        speaker = Speaker(process, name, seed, info.sample_rate)
        async with aclosing(speak(speaker, request)) as events:
            async for event in events:
                if isinstance(event, AudioDelta):
                    encoder.push(event.pcm)
        return encoder.finish()
    finally:
        await process.stop()


def _choose(voice: str | None, info: TalkerInfo) -> str:
    if voice is not None and voice not in info.voices:
        raise UnknownVoice(f"no voice {voice!r}; the checkpoint has {', '.join(info.voices)}")
    return voice or info.voices[0]
