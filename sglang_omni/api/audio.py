"""The choices that chat and speech share: which model, which voice, which audio."""

import secrets
from dataclasses import dataclass

from sglang_omni.api.backend import Backend
from sglang_omni.api.schema import MAX_SEED
from sglang_omni.errors import ModelNotFound, UnknownVoice
from sglang_omni.media.encode import AudioEncoder, AudioFormat
from sglang_omni.media.wav import CHANNELS
from sglang_omni.pipeline.request import Voice

# OpenAI's clients take pcm to be 24 kHz without asking.
PCM_RATE = 24_000


@dataclass(frozen=True)
class AudioOutput:
    """Format and rates (Hz) of the audio in one response."""

    format: AudioFormat
    sample_rate: int
    source_rate: int

    @property
    def headers(self) -> dict[str, str]:
        """What a client needs to play headerless samples."""
        return {"X-Sample-Rate": str(self.sample_rate), "X-Channels": str(CHANNELS)}

    def encoder(self, streaming: bool) -> AudioEncoder:
        """A fresh encoder for one response."""
        return AudioEncoder(self.format, self.source_rate, self.sample_rate, streaming)


def choose_output(
    audio_format: AudioFormat, sample_rate: int | None, backend: Backend
) -> AudioOutput:
    """The rate asked for, or else 24 kHz for pcm and the synthesis rate for wav."""
    usual = PCM_RATE if audio_format == "pcm" else backend.sample_rate
    return AudioOutput(audio_format, sample_rate or usual, backend.sample_rate)


def choose_voice(name: str | None, seed: int | None, backend: Backend, param: str) -> Voice:
    """The preset and the seed of its noise, drawn at random if the request has none.

    Raises `UnknownVoice`, naming the field `param`.
    """
    if name is not None and name not in backend.voices:
        raise UnknownVoice(f"{param}: no voice {name!r}; see GET /v1/audio/voices", param=param)
    return Voice(
        name=backend.default_voice if name is None else name,
        seed=secrets.randbelow(MAX_SEED + 1) if seed is None else seed,
    )


def require_model(name: str, backend: Backend) -> None:
    """Raises `ModelNotFound` for any name but the served one."""
    if name != backend.model:
        raise ModelNotFound(
            f"model: no model {name!r}; this server serves {backend.model!r}", param="model"
        )
