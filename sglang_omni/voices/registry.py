"""Every voice of a server: presets by name, stored voices, and recordings that requests bring."""

import asyncio
import re
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.pipeline.request import MediaPart, Reference, Voice
from sglang_omni.protocol.errors import Forbidden, InvalidRequest, UnknownVoice
from sglang_omni.voices.cloner import Cloned
from sglang_omni.voices.store import StoredVoice, VoiceStore

# Readable in a log line and in a URL; never part of a path.
NAME = re.compile(r"[\w][\w .-]{0,63}")
DEFAULT_VOICE = "default"
"""Stands for whatever voice a server speaks with by default: for clients that must name one."""


@dataclass(frozen=True)
class UploadedRecording:
    """A recording to keep. `consent` says, in words or by an id, that its speaker agrees."""

    name: str
    recording: MediaPart
    text: str | None
    consent: str
    owner: str | None


class MakesVoices(Protocol):
    """What turns a recording into a voice, as `Cloner` does."""

    async def clone(self, part: MediaPart, text: str | None, tenant: str | None = None) -> Cloned:
        """The voice of a recording that says `text`. Raises `InvalidRequest`."""
        ...


class VoiceRegistry:
    """The voices that users bring, beside the presets. Without a store none can be kept."""

    def __init__(self, cloner: MakesVoices, store: VoiceStore | None) -> None:
        self._cloner, self._store = cloner, store

    def stored(self, owner: str | None) -> list[StoredVoice]:
        """The voices that an owner has stored, oldest first."""
        return self._store.seen_by(owner) if self._store else []

    def choose(self, name: str, owner: str | None) -> ClonedVoice | None:
        """A stored voice by id or name, None if the owner has none such."""
        found = self._store.find(name, owner) if self._store else None
        return found[1] if found else None

    async def open(self, voice: Voice, tenant: str | None = None) -> str | ClonedVoice | None:
        """What the talker is told of a voice. Raises `InvalidRequest` for a recording that cannot
        be used, `UnknownVoice` for a voice that was deleted while the request waited."""
        if isinstance(voice.source, Reference):
            reference = voice.source
            cloned = await self._cloner.clone(reference.recording, reference.text, tenant)
            return cloned.voice
        if voice.source and self._store and not self._store.holds(voice.source):
            raise UnknownVoice(f"the voice {voice.name!r} was deleted", param="voice")
        return voice.source or voice.name or None

    async def add(self, upload: UploadedRecording, taken: tuple[str, ...]) -> StoredVoice:
        """Store a voice. Raises `Forbidden` without a folder for voices, `InvalidRequest` for an
        unusable name or recording, `VoicesFull` beyond a quota, `InsufficientStorage` where the
        disk is full."""
        store = self._require_store()
        check_name(upload.name, taken)
        store.reserve(upload.name, upload.owner)
        try:
            cloned = await self._cloner.clone(upload.recording, upload.text, upload.owner)
            voice = store.new(
                name=upload.name,
                owner=upload.owner,
                text=upload.text,
                consent=upload.consent,
                seconds=round(cloned.seconds, 3),
                has_speaker=cloned.has_speaker,
            )
            await asyncio.to_thread(store.write, voice, cloned.voice)
            store.keep(voice, cloned.voice)
            return voice
        finally:
            store.release(upload.name, upload.owner)

    def remove(self, name: str, owner: str | None, *, admin: bool = False) -> StoredVoice:
        """Delete a stored voice by id or name; an administrator may delete anybody's, by its id.

        Raises `VoiceNotFound`, and `Forbidden` without a folder for voices."""
        return self._require_store().remove(name, owner, anybodys=admin)

    def _require_store(self) -> VoiceStore:
        if self._store is None:
            raise Forbidden("this server was started without --voices-dir and stores no voices")
        return self._store


def check_name(name: str, taken: tuple[str, ...]) -> None:
    """Raises `InvalidRequest` for a name that is unreadable, looks like an id, or is `taken` by a
    preset or one of its aliases."""
    if not NAME.fullmatch(name) or name.startswith("voice_"):
        raise InvalidRequest(
            "name: 1 to 64 letters, digits, blanks, dots, dashes or underscores, the first a "
            "letter or digit; 'voice_' begins ids",
            param="name",
        )
    if name == DEFAULT_VOICE:
        raise InvalidRequest(f"name: {name!r} stands for the server's default voice", param="name")
    if name in taken:
        raise InvalidRequest(f"name: {name!r} is a preset of the checkpoint", param="name")
