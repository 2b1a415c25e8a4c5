"""All voices of a server: presets by name, stored voices, and recordings in requests."""

import asyncio
import re
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.pipeline.request import MediaPart, Reference, Voice
from sglang_omni.protocol.errors import Forbidden, InvalidRequest, UnknownVoice
from sglang_omni.voices.cloner import CloneResult
from sglang_omni.voices.store import StoredVoice, VoiceStore

# A name is readable in a log line and in a URL. It is never part of a path.
NAME_PATTERN = re.compile(r"[\w][\w .-]{0,63}")
DEFAULT_VOICE = "default"
"""The server's default voice, for clients that must name a voice."""


@dataclass(frozen=True)
class UploadedRecording:
    """A recording to store as a voice. `consent` is a statement or an id of the speaker's consent.

    `text` is its transcript, None if unknown. `owner` is None if the server has no API keys.
    """

    name: str
    recording: MediaPart
    text: str | None
    consent: str
    owner: str | None


class VoiceCloner(Protocol):
    """The interface of `RecordingCloner`."""

    async def clone(
        self, part: MediaPart, text: str | None, tenant: str | None = None
    ) -> CloneResult:
        """Return the voice of a recording with transcript `text`. Raises `InvalidRequest`."""
        ...


class VoiceRegistry:
    """The voices of users, besides the presets. Without a store no voice can be stored."""

    def __init__(self, cloner: VoiceCloner, store: VoiceStore | None) -> None:
        self._cloner, self._store = cloner, store

    def list_stored(self, owner: str | None) -> list[StoredVoice]:
        """Return the stored voices of an owner, oldest first."""
        return self._store.list_owned(owner) if self._store else []

    def find(self, name: str, owner: str | None) -> ClonedVoice | None:
        """Return an owner's stored voice by id or name, or None."""
        found = self._store.find(name, owner) if self._store else None
        return found[1] if found else None

    async def resolve(self, voice: Voice, tenant: str | None = None) -> str | ClonedVoice | None:
        """Return the voice to pass to the talker: a preset's name, a cloned voice, or None.

        Raises:
            InvalidRequest: The recording cannot be used.
            UnknownVoice: The voice was deleted while the request waited.
        """
        if isinstance(voice.source, Reference):
            reference = voice.source
            cloned = await self._cloner.clone(reference.recording, reference.text, tenant)
            return cloned.voice
        if voice.source and self._store and not self._store.is_stored(voice.source):
            raise UnknownVoice(f"the voice {voice.name!r} was deleted", param="voice")
        return voice.source or voice.name or None

    async def add(self, upload: UploadedRecording, taken: tuple[str, ...]) -> StoredVoice:
        """Store a voice under a name that is not in `taken`.

        Raises:
            Forbidden: The server has no folder for voices.
            InvalidRequest: The name or the recording cannot be used.
            VoicesFull: A quota is reached.
            InsufficientStorage: The disk is full.
        """
        store = self._require_store()
        validate_name(upload.name, taken)
        store.reserve(upload.name, upload.owner)
        try:
            cloned = await self._cloner.clone(upload.recording, upload.text, upload.owner)
            voice = store.create(
                name=upload.name,
                owner=upload.owner,
                text=upload.text,
                consent=upload.consent,
                seconds=round(cloned.seconds, 3),
                has_speaker=cloned.has_speaker,
            )
            await asyncio.to_thread(store.write, voice, cloned.voice)
            store.add(voice, cloned.voice)
            return voice
        finally:
            store.release(upload.name, upload.owner)

    def remove(self, name: str, owner: str | None, *, admin: bool = False) -> StoredVoice:
        """Delete a stored voice by id or name. An administrator may delete any voice by its id.

        Raises `VoiceNotFound`, and `Forbidden` if the server has no folder for voices.
        """
        return self._require_store().remove(name, owner, any_owner=admin)

    def _require_store(self) -> VoiceStore:
        if self._store is None:
            raise Forbidden("this server stores no voices; start it with --voices-dir")
        return self._store


def validate_name(name: str, taken: tuple[str, ...]) -> None:
    """Raise `InvalidRequest` for a name that is invalid, looks like an id, or is in `taken`.

    `taken` are the presets and their aliases.
    """
    if not NAME_PATTERN.fullmatch(name) or name.startswith("voice_"):
        raise InvalidRequest(
            "name: use 1 to 64 letters, digits, spaces, dots, dashes or underscores, starting with "
            "a letter or digit; names must not start with 'voice_'",
            param="name",
        )
    if name == DEFAULT_VOICE:
        raise InvalidRequest(
            f"name: {name!r} is reserved for the server's default voice", param="name"
        )
    if name in taken:
        raise InvalidRequest(f"name: {name!r} is a preset of the checkpoint", param="name")
