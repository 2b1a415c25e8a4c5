"""The choice of model, voice and audio format, shared by chat and speech."""

import secrets
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.media.encode import OutputAudioEncoder, get_sample_rates
from sglang_omni.media.wav import CHANNELS
from sglang_omni.models.capabilities import Capabilities, language_names
from sglang_omni.models.scripts import find_unspoken_words
from sglang_omni.pipeline.request import MediaPart, Reference, Voice
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.body import MAX_SEED
from sglang_omni.protocol.errors import InvalidRequest, ModelNotFound, UnknownVoice
from sglang_omni.voices.registry import DEFAULT_VOICE

# Length to which an error cuts each word that cannot be spoken.
MAX_QUOTED_CHARACTERS = 20
# OpenAI's clients assume 24 kHz for pcm; opus does not support 44.1 kHz.
DEFAULT_RATES = {"pcm": 24_000, "opus": 48_000}


@dataclass(frozen=True)
class AudioOutputChoice:
    """Format and rates (Hz) of the audio in one response."""

    format: AudioFormat
    sample_rate: int
    source_rate: int
    speed: float = 1.0

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that a client needs to play audio without a file header."""
        return {"X-Sample-Rate": str(self.sample_rate), "X-Channels": str(CHANNELS)}

    def make_encoder(self, streaming: bool) -> OutputAudioEncoder:
        """Return a new encoder for one response."""
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
    """Return the audio format of a response.

    Args:
        audio_format: Requested format.
        sample_rate: Requested rate in Hz. The default is 24 kHz for pcm, 48 kHz for opus, and the
            synthesis rate for other formats.
        backend: Gives the synthesis rate.
        speed: Playback speed.
        param: Name of the rate's field, for errors.

    Raises:
        InvalidRequest: The format does not support the rate.
    """
    default_rate = DEFAULT_RATES.get(audio_format, backend.sample_rate)
    rate, supported_rates = sample_rate or default_rate, get_sample_rates(audio_format)
    if supported_rates and rate not in supported_rates:
        listed = ", ".join(map(str, supported_rates))
        raise InvalidRequest(f"{param}: {audio_format} supports {listed}, not {rate}", param=param)
    return AudioOutputChoice(audio_format, rate, backend.sample_rate, speed)


class VoiceSelection(Protocol):
    """The fields of a body that select a voice."""

    @property
    def voice(self) -> str | None:
        """Return the name of a preset, or the name or id of a stored voice."""

    @property
    def ref_audio(self) -> str | None:
        """Return the source of a recording of the voice."""

    @property
    def ref_text(self) -> str | None:
        """Return the transcript of the recording."""


def choose_speaker(
    selection: VoiceSelection,
    seed: int | None,
    backend: Backend,
    owner: str | None,
    prefix: str = "",
) -> Voice:
    """Return the voice of a name or of a recording.

    Raises `InvalidRequest`, naming the field with `prefix` before it.
    """
    if selection.ref_audio is None:
        if selection.ref_text is not None:
            raise InvalidRequest(f"{prefix}ref_text: requires ref_audio", param=f"{prefix}ref_text")
        return choose_voice(selection.voice, seed, backend, f"{prefix}voice", owner)
    if selection.voice is not None:
        message = f"{prefix}ref_audio: cannot be combined with voice"
        raise InvalidRequest(message, param=f"{prefix}ref_audio")
    check_speakable(selection.ref_text or "", backend.capabilities, f"{prefix}ref_text")
    recording = MediaPart("audio", (selection.ref_audio,), f"{prefix}ref_audio")
    return Voice("", _choose_seed(seed), Reference(recording, selection.ref_text))


def check_speakable(text: str, capabilities: Capabilities, param: str) -> None:
    """Check that the checkpoint speaks the scripts of all words.

    Raises `InvalidRequest`, naming the field `param`.
    """
    if unspoken := find_unspoken_words(text, capabilities.speech_languages):
        listed = ", ".join(word[:MAX_QUOTED_CHARACTERS] for word in unspoken)
        languages = language_names(capabilities.speech_languages)
        raise InvalidRequest(
            f"{param}: {capabilities.name} speaks {languages}; it cannot read {listed}",
            param=param,
        )


def choose_voice(
    name: str | None, seed: int | None, backend: Backend, param: str, owner: str | None = None
) -> Voice:
    """Return a preset or a stored voice of `owner`, with the seed of its noise.

    No name, or "default", selects the server's default voice; an alias selects its preset. Without
    a seed, a random one is drawn. Raises `UnknownVoice`, naming the field `param`.
    """
    if name is None or name == DEFAULT_VOICE:
        name = backend.default_voice
    name = backend.voice_aliases.get(name, name)
    if name in backend.voices:
        return Voice(name, _choose_seed(seed))
    stored_voice = backend.voice_registry.find(name, owner)
    if stored_voice is None:
        raise UnknownVoice(f"{param}: no voice {name!r}; see GET /v1/audio/voices", param=param)
    return Voice(name, _choose_seed(seed), stored_voice)


def _choose_seed(seed: int | None) -> int:
    return secrets.randbelow(MAX_SEED + 1) if seed is None else seed


def require_model(name: str, backend: Backend) -> None:
    """Check that `name` is the served model. Raises `ModelNotFound`."""
    if name != backend.model:
        raise ModelNotFound(
            f"model: no model {name!r}; this server serves {backend.model!r}", param="model"
        )
