"""Stored voices: one safetensors file each, in a folder of their own. No torch.

A file is named by its voice's id, which is made here; what users write (name, transcript, consent)
stands in the file's metadata and never in a path. A file appears whole or not at all.
"""

import logging
import os
import secrets
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sglang_omni.engine.shared import SharedArray
from sglang_omni.errors import ConfigError, InvalidRequest, Overloaded, VoiceNotFound
from sglang_omni.talker.contract import ClonedVoice

logger = logging.getLogger(__name__)

SUFFIX = ".safetensors"
PREFIX = "voice_"
ID_BYTES = 12
FORMAT = "1"


@dataclass(frozen=True)
class StoredVoice:
    """What is known of a voice. `owner` is None where the server asks for no keys; `model` stands
    for the weights that its latents belong to; `created_at` is in seconds since 1970."""

    id: str
    name: str
    owner: str | None
    text: str | None
    consent: str
    seconds: float
    created_at: int
    model: str
    has_speaker: bool


@dataclass(frozen=True)
class Quota:
    """The most voices that are kept, for all and for one owner."""

    stored: int
    per_owner: int


class VoiceStore:
    """The voices of a folder, held in memory as well. Owned by the event loop; the files are
    written by its threads.

    Only its owner sees a voice. Where no keys are asked for, everybody sees every voice.
    """

    def __init__(self, folder: Path, quota: Quota, model: str) -> None:
        """Nothing is read yet. `model` stands for the weights that are served."""
        self._folder, self._quota, self._model = folder, quota, model
        self._voices: dict[str, tuple[StoredVoice, ClonedVoice]] = {}
        # Taken before a file is written, so that two uploads at once cannot pass a quota.
        self._reserved: dict[tuple[str | None, str], None] = {}

    def load(self) -> None:
        """Read the folder, which is made if need be. A file that cannot be read, or belongs to
        other weights, is left alone, and said so. Raises `ConfigError` for an unusable folder."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files = sorted(self._folder.glob(f"{PREFIX}*{SUFFIX}"))
            for left in self._folder.glob(f"{PREFIX}*.part"):
                left.unlink()
        except OSError as error:
            raise ConfigError(
                f"voices_dir {self._folder}: {error.strerror}", param="voices_dir"
            ) from None
        for file in files:
            self._load(file)

    def _load(self, file: Path) -> None:
        try:
            voice, cloned = _read(file)
        except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
            logger.error("%s is no voice and is left alone: %s", file.name, type(error).__name__)
            return
        if voice.model != self._model:
            logger.warning("%s belongs to other weights and is left alone", file.name)
        elif voice.id == file.stem:
            self._voices[voice.id] = voice, cloned

    def seen_by(self, owner: str | None) -> list[StoredVoice]:
        """The voices of an owner, oldest first."""
        mine = [voice for voice, _ in self._voices.values() if voice.owner == owner]
        return sorted(mine, key=lambda voice: (voice.created_at, voice.id))

    def find(self, name: str, owner: str | None) -> tuple[StoredVoice, ClonedVoice] | None:
        """A voice by its id or its name, if the owner has one."""
        found = self._voices.get(name)
        if found is not None and found[0].owner == owner:
            return found
        named = (entry for entry in self._voices.values() if entry[0].owner == owner)
        return next((entry for entry in named if entry[0].name == name), None)

    def reserve(self, name: str, owner: str | None) -> None:
        """Set a place aside, to be given back by `release`.

        Raises `InvalidRequest` for a name that the owner has used, `VoicesFull` beyond a quota.
        """
        if self.find(name, owner) or (owner, name) in self._reserved:
            raise InvalidRequest(f"name: there is a voice {name!r} already", param="name")
        mine = len(self.seen_by(owner)) + sum(one == owner for one, _ in self._reserved)
        if mine >= self._quota.per_owner:
            raise VoicesFull(f"{mine} voices are stored, the most for one key; delete one first")
        if len(self._voices) + len(self._reserved) >= self._quota.stored:
            raise VoicesFull("this server stores no more voices")
        self._reserved[owner, name] = None

    def release(self, name: str, owner: str | None) -> None:
        """Give a place back, whether it was filled or not."""
        self._reserved.pop((owner, name), None)

    def new(self, **known: Any) -> StoredVoice:
        """A voice with an id of its own; `known` are the fields that only the caller knows."""
        voice_id = PREFIX + secrets.token_hex(ID_BYTES)
        return StoredVoice(id=voice_id, created_at=int(time.time()), model=self._model, **known)

    def write(self, voice: StoredVoice, cloned: ClonedVoice) -> None:
        """Put a voice on disk; blocks."""
        values = cloned.array.read(cloned.layout)
        meta = {"format": FORMAT, "key": cloned.key, "latents": str(cloned.latents)}
        _write_whole(self._path(voice.id), save({"voice": values}, {**meta, **_texts(voice)}))

    def keep(self, voice: StoredVoice, cloned: ClonedVoice) -> None:
        """Take in a voice that was written."""
        self._voices[voice.id] = voice, cloned

    def remove(self, name: str, owner: str | None, *, anybodys: bool = False) -> StoredVoice:
        """Delete a voice by id or name, `anybodys` by its id. Raises `VoiceNotFound`."""
        found = self._voices.get(name) if anybodys else None
        found = found or self.find(name, owner)
        if found is None:
            raise VoiceNotFound(f"there is no stored voice {name[:100]!r}", param="voice")
        self._path(found[0].id).unlink(missing_ok=True)
        del self._voices[found[0].id]
        return found[0]

    def _path(self, voice_id: str) -> Path:
        return self._folder / f"{voice_id}{SUFFIX}"


class VoicesFull(Overloaded):
    """No more voices can be stored. Waiting does not help: one must be deleted."""

    code = "voice_quota_exceeded"


def _texts(voice: StoredVoice) -> dict[str, str]:
    """Metadata as safetensors has it: strings alone; what is None is left out."""
    return {name: str(value) for name, value in asdict(voice).items() if value is not None}


def _read(file: Path) -> tuple[StoredVoice, ClonedVoice]:
    with safe_open(file, framework="np") as content:
        meta, values = content.metadata(), content.get_tensor("voice")
    if meta["format"] != FORMAT or values.ndim != 1 or values.dtype != np.float32:
        raise ValueError(meta["format"])
    voice = StoredVoice(
        id=meta["id"],
        name=meta["name"],
        owner=meta.get("owner"),
        text=meta.get("text"),
        consent=meta["consent"],
        seconds=float(meta["seconds"]),
        created_at=int(meta["created_at"]),
        model=meta["model"],
        has_speaker=meta["has_speaker"] == "True",
    )
    array = SharedArray()
    layout = array.write(values)
    return voice, ClonedVoice(meta["key"], voice.text, array, layout, int(meta["latents"]))


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file under another name and move it, so that nobody meets half of it."""
    part = path.with_suffix(".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Have a new entry of a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
