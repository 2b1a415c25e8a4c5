"""Stored voices: one safetensors file each, in a folder of their own. No torch.

A file is named by its voice's id, which is made here; what users write (name, transcript, consent)
stands in the file's metadata and never in a path. A file appears whole or not at all.

Several servers may share a folder: what is stored or deleted by one is seen by the others at the
next use of a voice.
"""

import logging
import os
import secrets
import time
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.protocol.errors import ConfigError, InvalidRequest, Overloaded, VoiceNotFound
from sglang_omni.voices.files import open_file, remove_abandoned, write_whole

logger = logging.getLogger(__name__)

SUFFIX = ".safetensors"
PREFIX = "voice_"
ID_BYTES = 12
FORMAT = "1"
MAX_READ_AT_ONCE = 16
"""Voices that another server stored are read on the event loop, half a millisecond each."""
SETTLED_NS = 2 * 10**9
"""A folder that changed less than so long ago may change again without a new time."""


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
    written by its threads. Every use looks first whether another server changed the folder.

    Only its owner sees a voice. Where no keys are asked for, everybody sees every voice.
    """

    def __init__(self, folder: Path, quota: Quota, model: str) -> None:
        """Nothing is read yet. `model` stands for the weights that are served."""
        self._folder, self._quota, self._model = folder, quota, model
        self._voices: dict[str, tuple[StoredVoice, ClonedVoice]] = {}
        # Files that are no voices of ours, by their ids: they are not read again.
        self._ignored: dict[str, None] = {}
        # When the folder had changed last as it was read, None if it is to be read again.
        self._seen_ns: int | None = None
        # Taken before a file is written, so that two uploads at once cannot pass a quota.
        self._reserved: dict[tuple[str | None, str], None] = {}

    def load(self) -> None:
        """Read the folder, which is made if need be. A file that cannot be read, or belongs to
        other weights, is left alone, and said so. Raises `ConfigError` for an unusable folder."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_abandoned(self._folder, PREFIX)
            self._read_folder(None)
        except OSError as error:
            raise ConfigError(
                f"voices_dir {self._folder}: {error.strerror}", param="voices_dir"
            ) from None

    def _refresh(self) -> None:
        """See what other servers have stored and deleted. A folder that cannot be read has no
        voices: whether they were deleted cannot be told."""
        try:
            changed_ns = self._folder.stat().st_mtime_ns
            if changed_ns != self._seen_ns:
                is_complete = self._read_folder(MAX_READ_AT_ONCE)
                is_settled = time.time_ns() - changed_ns > SETTLED_NS
                self._seen_ns = changed_ns if is_complete and is_settled else None
        except OSError as error:
            if self._voices:
                logger.error("voices_dir cannot be read, no voice is used: %s", error.strerror)
            self._voices.clear()
            self._seen_ns = None

    def _read_folder(self, most: int | None) -> bool:
        """Forget voices without a file and read new files, at most so many; return whether those
        were all. Raises `OSError`."""
        there = {file.stem: file for file in self._files()}
        for known in (self._voices, self._ignored):
            for voice_id in known.keys() - there.keys():
                del known[voice_id]
        new = sorted(there.keys() - self._voices.keys() - self._ignored.keys())
        for voice_id in islice(new, most):
            self._load(there[voice_id])
        return most is None or len(new) <= most

    def _files(self) -> list[Path]:
        """The files of voices. A link is none: it could lead anywhere."""
        with os.scandir(self._folder) as entries:
            return [
                Path(entry.path)
                for entry in entries
                if entry.name.startswith(PREFIX)
                and entry.name.endswith(SUFFIX)
                and entry.is_file(follow_symlinks=False)
            ]

    def _load(self, file: Path) -> None:
        self._ignored[file.stem] = None
        try:
            voice, cloned = _read(file)
        except FileNotFoundError:
            return  # Another server deleted it just now.
        except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
            logger.error("%s is no voice and is left alone: %s", file.name, type(error).__name__)
            return
        if voice.model != self._model:
            logger.warning("%s belongs to other weights and is left alone", file.name)
        elif voice.id == file.stem:
            del self._ignored[file.stem]
            self._voices[voice.id] = voice, cloned

    def seen_by(self, owner: str | None) -> list[StoredVoice]:
        """The voices of an owner, oldest first."""
        self._refresh()
        mine = [voice for voice, _ in self._voices.values() if voice.owner == owner]
        return sorted(mine, key=lambda voice: (voice.created_at, voice.id))

    def find(self, name: str, owner: str | None) -> tuple[StoredVoice, ClonedVoice] | None:
        """A voice by its id or its name, if the owner has one; the oldest where two servers stored
        one of that name at once."""
        self._refresh()
        found = self._voices.get(name)
        if found is None or found[0].owner != owner:
            named = (voice for voice in self.seen_by(owner) if voice.name == name)
            found = next((self._voices[voice.id] for voice in named), None)
        # The folder's time may not tell of the latest change; a deleted voice is never used.
        if found is not None and not self._path(found[0].id).is_file():
            del self._voices[found[0].id]
            return self.find(name, owner)
        return found

    def holds(self, cloned: ClonedVoice) -> bool:
        """Whether a voice that was found before is still stored."""
        found = [voice for voice, one in self._voices.values() if one is cloned]
        return any(self._path(voice.id).is_file() for voice in found)

    def reserve(self, name: str, owner: str | None) -> None:
        """Set a place aside, to be given back by `release`.

        Raises `InvalidRequest` for a name that the owner has used, `VoicesFull` beyond a quota.
        """
        if self.find(name, owner) or (owner, name) in self._reserved:
            raise InvalidRequest(f"name: there is a voice {name!r} already", param="name")
        # A voice that was written and not yet kept may have been read from the folder already.
        stored = {(voice.owner, voice.name) for voice, _ in self._voices.values()}
        reserved = self._reserved.keys() - stored
        mine = len(self.seen_by(owner)) + sum(one == owner for one, _ in reserved)
        if mine >= self._quota.per_owner:
            raise VoicesFull(f"{mine} voices are stored, the most for one key; delete one first")
        if len(self._voices) + len(reserved) >= self._quota.stored:
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
        """Put a voice on disk; blocks. Raises `InsufficientStorage` where there is no room."""
        remove_abandoned(self._folder, PREFIX)
        values = cloned.array.read(cloned.layout)
        meta = {"format": FORMAT, "key": cloned.key, "latents": str(cloned.latents)}
        write_whole(self._path(voice.id), save({"voice": values}, {**meta, **_texts(voice)}))

    def keep(self, voice: StoredVoice, cloned: ClonedVoice) -> None:
        """Take in a voice that was written."""
        self._voices[voice.id] = voice, cloned

    def remove(self, name: str, owner: str | None, *, anybodys: bool = False) -> StoredVoice:
        """Delete a voice by id or name, `anybodys` by its id. Raises `VoiceNotFound`."""
        self._refresh()
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
    with open_file(file) as path, safe_open(path, framework="np") as content:
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
