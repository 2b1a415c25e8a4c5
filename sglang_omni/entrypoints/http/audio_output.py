"""The choices that chat and speech share: which model, which voice, which audio."""

import secrets
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.media.encode import AudioFormat, OutputAudioEncoder, rates_of
from sglang_omni.media.wav import CHANNELS
from sglang_omni.models.capabilities import Capabilities, language_names
from sglang_omni.models.ming.text.scripts import find_unspoken_words
from sglang_omni.pipeline.request import MediaPart, Reference, Voice
from sglang_omni.protocol.body import MAX_SEED
from sglang_omni.protocol.errors import InvalidRequest, ModelNotFound, UnknownVoice
from sglang_omni.voices.registry import DEFAULT_VOICE

# Of a word that cannot be read, in an error.
SHOWN_CHARACTERS = 20
# OpenAI's clients take pcm to be 24 kHz without asking; opus knows no 44.1 kHz.
USUAL_RATES = {"pcm": 24_000, "opus": 48_000}


@dataclass(frozen=True)
class AudioOutputChoice:
    """Format and rates (Hz) of the audio in one response."""

    format: AudioFormat
    sample_rate: int
    source_rate: int
    speed: float = 1.0

    @property
    def headers(self) -> dict[str, str]:
        """What a client needs to play headerless samples."""
        return {"X-Sample-Rate": str(self.sample_rate), "X-Channels": str(CHANNELS)}

    def encoder(self, streaming: bool) -> OutputAudioEncoder:
        """A fresh encoder for one response."""
        return OutputAudioEncoder(
            self.format, self.source_rate, self.sample_rate, streaming, self.speed
        )


def choose_output(
    audio_format: AudioFormat,
    sample_rate: int | None,
    backend: Backend,
    speed: float = 1.0,
    param: str = "sample_rate",
) -> AudioOutputChoice:
    """The rate asked for, or else 24 kHz for pcm, 48 kHz for opus and the synthesis rate.

    Raises `InvalidRequest`, naming the field `param`, for a rate that the format does not take.
    """
    usual = USUAL_RATES.get(audio_format, backend.sample_rate)
    rate, known = sample_rate or usual, rates_of(audio_format)
    if known and rate not in known:
        listed = ", ".join(map(str, known))
        raise InvalidRequest(f"{param}: {audio_format} takes {listed}, not {rate}", param=param)
    return AudioOutputChoice(audio_format, rate, backend.sample_rate, speed)


class AskedVoice(Protocol):
    """What a body says of the voice it wants."""

    @property
    def voice(self) -> str | None:
        """A preset, or a stored voice by name or id."""

    @property
    def ref_audio(self) -> str | None:
        """Where a recording of the voice is."""

    @property
    def ref_text(self) -> str | None:
        """What the recording says."""


def choose_speaker(
    asked: AskedVoice, seed: int | None, backend: Backend, owner: str | None, prefix: str = ""
) -> Voice:
    """Who speaks, by a name or like a recording. Raises `InvalidRequest`, naming the field, which
    `prefix` leads to."""
    if asked.ref_audio is None:
        if asked.ref_text is not None:
            raise InvalidRequest(f"{prefix}ref_text: needs ref_audio", param=f"{prefix}ref_text")
        return choose_voice(asked.voice, seed, backend, f"{prefix}voice", owner)
    if asked.voice is not None:
        message = f"{prefix}ref_audio: excludes voice, which is another one"
        raise InvalidRequest(message, param=f"{prefix}ref_audio")
    check_spoken(asked.ref_text or "", backend.capabilities, f"{prefix}ref_text")
    recording = MediaPart("audio", (asked.ref_audio,), f"{prefix}ref_audio")
    return Voice("", _seed(seed), Reference(recording, asked.ref_text))


def check_spoken(text: str, capabilities: Capabilities, param: str) -> None:
    """Refuse words in scripts that the checkpoint does not speak. Raises `InvalidRequest`, naming
    the field `param`."""
    if words := find_unspoken_words(text, capabilities.speech_languages):
        listed = ", ".join(word[:SHOWN_CHARACTERS] for word in words)
        languages = language_names(capabilities.speech_languages)
        raise InvalidRequest(
            f"{param}: {capabilities.name} speaks {languages}; it cannot read {listed}",
            param=param,
        )


def choose_voice(
    name: str | None, seed: int | None, backend: Backend, param: str, owner: str | None = None
) -> Voice:
    """A preset, or a voice that `owner` has stored, and the seed of its noise, drawn at random if
    the request has none. No name, and "default", stand for the server's default voice; an alias for
    its preset. Raises `UnknownVoice`, naming the field `param`."""
    if name is None or name == DEFAULT_VOICE:
        name = backend.default_voice
    name = backend.voice_aliases.get(name, name)
    if name in backend.voices:
        return Voice(name, _seed(seed))
    stored = backend.shelf.choose(name, owner)
    if stored is None:
        raise UnknownVoice(f"{param}: no voice {name!r}; see GET /v1/audio/voices", param=param)
    return Voice(name, _seed(seed), stored)


def _seed(seed: int | None) -> int:
    return secrets.randbelow(MAX_SEED + 1) if seed is None else seed


def require_model(name: str, backend: Backend) -> None:
    """Raises `ModelNotFound` for any name but the served one."""
    if name != backend.model:
        raise ModelNotFound(
            f"model: no model {name!r}; this server serves {backend.model!r}", param="model"
        )
