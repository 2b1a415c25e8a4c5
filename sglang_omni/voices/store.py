"""Stored voices, one safetensors file each, in one folder. Does not import torch.

A file is named by its voice's generated id. User input (name, transcript, consent) is in the file's
metadata and never in a path. Files are written atomically.

Several servers may share a folder. Each sees at the next use of a voice what another server stored
or deleted.
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
from sglang_omni.voices.files import open_regular_file, remove_abandoned, write_atomic

logger = logging.getLogger(__name__)

FILE_SUFFIX = ".safetensors"
ID_PREFIX = "voice_"
ID_BYTES = 12
FORMAT_VERSION = "1"
MAX_READ_AT_ONCE = 16
"""Voices of other servers are read on the event loop and take half a millisecond each."""
SETTLED_NS = 2 * 10**9
"""A folder modified more recently may change again without a new modification time."""


@dataclass(frozen=True)
class StoredVoice:
    """The metadata of a stored voice.

    `owner` is None if the server has no API keys. `model` is the fingerprint of the weights that
    its latents belong to. `created_at` is in seconds since 1970.
    """

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
    """The maximum number of stored voices, in total and per owner."""

    max_stored: int
    max_per_owner: int


class VoiceStore:
    """The voices of a folder, also held in memory.

    The event loop owns it; `write` runs in a thread. Every use first checks whether another server
    changed the folder. A voice is visible only to its owner. Without API keys every voice is
    visible to everybody.
    """

    def __init__(self, folder: Path, quota: Quota, model: str) -> None:
        """Open a folder without reading it. `model` is the fingerprint of the served weights."""
        self._folder, self._quota, self._model = folder, quota, model
        self._voices: dict[str, tuple[StoredVoice, ClonedVoice]] = {}
        # The ids of files that are not usable voices. They are not read again.
        self._ignored: dict[str, None] = {}
        # The folder's modification time when it was read, None if it must be read again.
        self._read_mtime_ns: int | None = None
        # Reserved before a file is written, so that concurrent uploads cannot exceed a quota.
        self._reserved: dict[tuple[str | None, str], None] = {}

    def load(self) -> None:
        """Read the folder, and create it if needed.

        A file that cannot be read or belongs to other weights is logged and ignored. Raises
        `ConfigError` for an unusable folder.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_abandoned(self._folder, ID_PREFIX)
            self._read_folder(None)
        except OSError as error:
            raise ConfigError(
                f"voices_dir {self._folder}: {error.strerror}", param="voices_dir"
            ) from None

    def _refresh(self) -> None:
        """Read the changes of other servers.

        A folder that cannot be read has no voices, because they may have been deleted.
        """
        try:
            changed_ns = self._folder.stat().st_mtime_ns
            if changed_ns != self._read_mtime_ns:
                is_complete = self._read_folder(MAX_READ_AT_ONCE)
                is_settled = time.time_ns() - changed_ns > SETTLED_NS
                self._read_mtime_ns = changed_ns if is_complete and is_settled else None
        except OSError as error:
            if self._voices:
                logger.error(
                    "voices_dir cannot be read; stored voices are unavailable: %s", error.strerror
                )
            self._voices.clear()
            self._read_mtime_ns = None

    def _read_folder(self, max_files: int | None) -> bool:
        """Forget voices whose file is gone and read at most `max_files` new files.

        Returns whether all new files were read. Raises `OSError`.
        """
        files = {file.stem: file for file in self._list_files()}
        for voices in (self._voices, self._ignored):
            for voice_id in voices.keys() - files.keys():
                del voices[voice_id]
        new_ids = sorted(files.keys() - self._voices.keys() - self._ignored.keys())
        for voice_id in islice(new_ids, max_files):
            self._load(files[voice_id])
        return max_files is None or len(new_ids) <= max_files

    def _list_files(self) -> list[Path]:
        """Return the voice files. Links are left out because they could lead anywhere."""
        with os.scandir(self._folder) as entries:
            return [
                Path(entry.path)
                for entry in entries
                if entry.name.startswith(ID_PREFIX)
                and entry.name.endswith(FILE_SUFFIX)
                and entry.is_file(follow_symlinks=False)
            ]

    def _load(self, file: Path) -> None:
        self._ignored[file.stem] = None
        try:
            voice, cloned = _read_voice(file)
        except FileNotFoundError:
            return  # Another server deleted it just now.
        except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
            logger.error(
                "%s is not a valid voice and is ignored: %s", file.name, type(error).__name__
            )
            return
        if voice.model != self._model:
            logger.warning("%s belongs to other weights and is ignored", file.name)
        elif voice.id == file.stem:
            del self._ignored[file.stem]
            self._voices[voice.id] = voice, cloned

    def list_owned(self, owner: str | None) -> list[StoredVoice]:
        """Return the voices of an owner, oldest first."""
        self._refresh()
        owned = [voice for voice, _ in self._voices.values() if voice.owner == owner]
        return sorted(owned, key=lambda voice: (voice.created_at, voice.id))

    def find(self, name: str, owner: str | None) -> tuple[StoredVoice, ClonedVoice] | None:
        """Return an owner's voice by id or name, or None.

        Two servers may store the same name at the same time. Then the oldest voice is returned.
        """
        self._refresh()
        entry = self._voices.get(name)
        if entry is None or entry[0].owner != owner:
            named = (voice for voice in self.list_owned(owner) if voice.name == name)
            entry = next((self._voices[voice.id] for voice in named), None)
        # The folder's modification time may miss the latest change, and a deleted voice must not
        # be used.
        if entry is not None and not self._path(entry[0].id).is_file():
            del self._voices[entry[0].id]
            return self.find(name, owner)
        return entry

    def is_stored(self, cloned: ClonedVoice) -> bool:
        """Return whether a voice that was found before is still stored."""
        matches = [voice for voice, stored in self._voices.values() if stored is cloned]
        return any(self._path(voice.id).is_file() for voice in matches)

    def reserve(self, name: str, owner: str | None) -> None:
        """Reserve a name and a place in the quotas, until `release`.

        Raises `InvalidRequest` for a name that the owner uses, `VoicesFull` if a quota is reached.
        """
        if self.find(name, owner) or (owner, name) in self._reserved:
            raise InvalidRequest(f"name: a voice {name!r} exists already", param="name")
        # A voice that was written and not yet added may have been read from the folder already.
        stored = {(voice.owner, voice.name) for voice, _ in self._voices.values()}
        reserved = self._reserved.keys() - stored
        num_owned = len(self.list_owned(owner))
        num_owned += sum(reserved_owner == owner for reserved_owner, _ in reserved)
        if num_owned >= self._quota.max_per_owner:
            raise VoicesFull(
                f"{num_owned} voices are stored, the maximum for one key; delete one first"
            )
        if len(self._voices) + len(reserved) >= self._quota.max_stored:
            raise VoicesFull("the server has reached its limit of stored voices; delete one first")
        self._reserved[owner, name] = None

    def release(self, name: str, owner: str | None) -> None:
        """Give a reservation back, whether a voice was stored or not."""
        self._reserved.pop((owner, name), None)

    def create(self, **fields: Any) -> StoredVoice:
        """Return the metadata of a new voice with a new id and the caller's `fields`."""
        voice_id = ID_PREFIX + secrets.token_hex(ID_BYTES)
        return StoredVoice(id=voice_id, created_at=int(time.time()), model=self._model, **fields)

    def write(self, voice: StoredVoice, cloned: ClonedVoice) -> None:
        """Write a voice to disk. Blocks. Raises `InsufficientStorage` if the disk is full."""
        remove_abandoned(self._folder, ID_PREFIX)
        values = cloned.array.read(cloned.layout)
        meta = {"format": FORMAT_VERSION, "key": cloned.key, "latents": str(cloned.latents)}
        write_atomic(self._path(voice.id), save({"voice": values}, {**meta, **_to_metadata(voice)}))

    def add(self, voice: StoredVoice, cloned: ClonedVoice) -> None:
        """Add a voice that was written."""
        self._voices[voice.id] = voice, cloned

    def remove(self, name: str, owner: str | None, *, any_owner: bool = False) -> StoredVoice:
        """Delete an owner's voice by id or name, or with `any_owner` any voice by its id.

        Raises `VoiceNotFound`.
        """
        self._refresh()
        entry = self._voices.get(name) if any_owner else None
        entry = entry or self.find(name, owner)
        if entry is None:
            raise VoiceNotFound(f"there is no stored voice {name[:100]!r}", param="voice")
        self._path(entry[0].id).unlink(missing_ok=True)
        del self._voices[entry[0].id]
        return entry[0]

    def _path(self, voice_id: str) -> Path:
        return self._folder / f"{voice_id}{FILE_SUFFIX}"


class VoicesFull(Overloaded):
    """No more voices can be stored until one is deleted. Waiting does not help."""

    code = "voice_quota_exceeded"


def _to_metadata(voice: StoredVoice) -> dict[str, str]:
    """Return metadata for safetensors, which takes strings only. None is left out."""
    return {name: str(value) for name, value in asdict(voice).items() if value is not None}


def _read_voice(file: Path) -> tuple[StoredVoice, ClonedVoice]:
    with open_regular_file(file) as path, safe_open(path, framework="np") as content:
        meta, values = content.metadata(), content.get_tensor("voice")
    if meta["format"] != FORMAT_VERSION or values.ndim != 1 or values.dtype != np.float32:
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
