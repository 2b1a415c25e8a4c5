"""The choice of the voice, shared by chat and speech."""

import secrets
from collections.abc import Container
from typing import Protocol

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.models.capabilities import Capabilities, language_names
from sglang_omni.models.scripts import find_unspoken_words
from sglang_omni.pipeline.request import MediaPart, Reference, Voice
from sglang_omni.protocol.body import MAX_SEED
from sglang_omni.protocol.errors import InvalidRequest, UnknownVoice
from sglang_omni.voices.registry import DEFAULT_VOICE

# Length to which an error cuts each word that cannot be spoken.
MAX_QUOTED_CHARACTERS = 20


class VoiceSelection(Protocol):
    """The fields of a body that select a voice."""

    @property
    def voice(self) -> str | None:
        """Return the name of a preset, or the name or id of a stored voice."""

    @property
    def ref_audio(self) -> str | bytes | None:
        """Return a recording of the voice: its source, or its file."""

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
    check_cloning(backend.capabilities, f"{prefix}ref_audio")
    check_speakable(selection.ref_text or "", backend.capabilities, f"{prefix}ref_text")
    recording = MediaPart("audio", (selection.ref_audio,), f"{prefix}ref_audio")
    return Voice("", _choose_seed(seed), Reference(recording, selection.ref_text))


def check_cloning(capabilities: Capabilities, param: str) -> None:
    """Check that the checkpoint speaks in the voice of a recording.

    Raises `InvalidRequest`, naming the field `param`.
    """
    if not capabilities.voice_cloning:
        raise InvalidRequest(
            f"{param}: {capabilities.name} does not speak in the voice of a recording; "
            "choose one of its voices",
            param=param,
        )


def check_speakable(
    text: str, capabilities: Capabilities, param: str, lexicon: Container[str] = ()
) -> None:
    """Check that the checkpoint speaks the scripts of all words that the lexicon does not have.

    Raises `InvalidRequest`, naming the field `param`.
    """
    if unspoken := find_unspoken_words(text, capabilities.speech_languages, lexicon=lexicon):
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

    No name, or "default", selects the server's default voice; an alias selects its preset, and
    one of OpenAI's voices its own preset if no other voice has its name. Without a seed, a random
    one is drawn. Raises `UnknownVoice`, naming the field `param`.
    """
    if name is None or name == DEFAULT_VOICE:
        name = backend.default_voice
    name = backend.voice_aliases.get(name, name)
    if name in backend.voices:
        return Voice(name, _choose_seed(seed))
    stored_voice = backend.voice_registry.find(name, owner)
    if stored_voice is None and name in backend.openai_voices:
        return Voice(backend.openai_voices[name], _choose_seed(seed))
    if stored_voice is None:
        hint = "this server does not mix voices" if "+" in name else "see GET /v1/audio/voices"
        raise UnknownVoice(f"{param}: no voice {name!r}; {hint}", param=param)
    return Voice(name, _choose_seed(seed), stored_voice)


def _choose_seed(seed: int | None) -> int:
    return secrets.randbelow(MAX_SEED + 1) if seed is None else seed
