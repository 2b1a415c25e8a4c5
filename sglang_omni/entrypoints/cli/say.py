"""Implements `sgl-omni say`: synthesises a text to a WAV file, with the speech engine alone."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.speech.contract import TalkerInfo
from sglang_omni.entrypoints.cli.start_progress import show_progress
from sglang_omni.entrypoints.requests.ssml import apply_ssml
from sglang_omni.entrypoints.startup.cache_folders import prepare_home
from sglang_omni.entrypoints.startup.checkpoint import find_checkpoint
from sglang_omni.entrypoints.startup.log_folder import open_log_folder
from sglang_omni.entrypoints.startup.preflight_checks import (
    choose_voice,
    make_write_error,
    require_output,
)
from sglang_omni.media.encode import OutputAudioEncoder
from sglang_omni.models.registry import family_of
from sglang_omni.models.speech_text import SpeechText
from sglang_omni.pipeline.request import AudioDelta, SpeechRequest, Voice
from sglang_omni.pipeline.speech import Speaker, speak
from sglang_omni.serving.engine_config import build_talker_spec


def say(config: Config, text: str, output: Path, seed: int) -> int:
    """Synthesise `text`, which may be SSML, to the WAV file `output`.

    Return the exit status. Raises `OmniError`.
    """
    require_output(output)
    checkpoint = find_checkpoint(config.model_path)
    family = family_of(checkpoint)
    voice = choose_voice(config.voice, family.voice_names(checkpoint))
    config = replace(config, log_folder=open_log_folder(config.log_folder, "say"))
    prepare_home()
    # Invalid SSML is refused before the engine starts.
    request = apply_ssml(SpeechRequest("say", text, Voice(voice, seed)))
    process = EngineProcess(build_talker_spec(config, checkpoint))
    data = asyncio.run(_synthesise(process, family.speech_text, request))
    try:
        output.write_bytes(data)
    except OSError as error:
        raise make_write_error(output, error) from None
    print(f"wrote {output}")
    return 0


async def _synthesise(
    process: EngineProcess, speech_text: SpeechText, request: SpeechRequest
) -> bytes:
    """Return the bytes of a complete WAV file."""
    try:
        async with show_progress({"talker": process}):
            await process.start()
        info: TalkerInfo = process.health.info
        encoder = OutputAudioEncoder("wav", info.sample_rate, info.sample_rate, streaming=False)
        speaker = Speaker(
            process,
            speech_text,
            info.frame_s,
            request.voice.name,
            request.voice.seed,
            info.sample_rate,
            reading=request.reading,
        )
        async with aclosing(speak(speaker, request)) as events:
            async for event in events:
                if isinstance(event, AudioDelta):
                    encoder.push(event.pcm)
        return encoder.finish()
    finally:
        await process.stop()
