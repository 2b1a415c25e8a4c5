"""Drawn images that clients fetch by URL, for a limited time."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.media.image_file import ImageFileType

# Random bits of a name are what protects an image.
_NAME_BYTES = 16


@dataclass(frozen=True)
class StoredImage:
    """A file and its type."""

    data: bytes
    file_type: ImageFileType


class ImageStore(Protocol):
    """Files by name. A name has 128 random bits: whoever knows it may fetch the file."""

    async def add(self, data: bytes, file_type: ImageFileType) -> str:
        """Store a file, and return its name."""

    async def get(self, name: str) -> StoredImage | None:
        """Return a file; None if there is none or it has expired."""


def make_image_name(file_type: ImageFileType) -> str:
    """Return a new name, which nobody can guess."""
    return f"{secrets.token_urlsafe(_NAME_BYTES)}.{file_type}"


@dataclass(frozen=True)
class _ImageEntry:
    """A stored image, and the time at which it expires."""

    image: StoredImage
    expires_at: float


class MemoryImageStore:
    """Files by name, in memory. Used by the event loop only."""

    def __init__(
        self, max_bytes: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Keep files for `seconds`, and at most `max_bytes` of them, but at least the latest."""
        self._max_bytes, self._seconds, self._clock = max_bytes, seconds, clock
        # In the order in which they expire.
        self._files: dict[str, _ImageEntry] = {}
        self._held_bytes = 0

    async def add(self, data: bytes, file_type: ImageFileType) -> str:
        """Store a file, drop the oldest beyond the bound, and return its name."""
        name = make_image_name(file_type)
        self._files[name] = _ImageEntry(StoredImage(data, file_type), self._clock() + self._seconds)
        self._held_bytes += len(data)
        self._drop_expired()
        while self._held_bytes > self._max_bytes and len(self._files) > 1:
            self._drop(next(iter(self._files)))
        return name

    async def get(self, name: str) -> StoredImage | None:
        """Return a file; None if there is none or it has expired."""
        self._drop_expired()
        entry = self._files.get(name)
        return entry.image if entry else None

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._files:
            name, oldest = next(iter(self._files.items()))
            if oldest.expires_at > now:
                return
            self._drop(name)

    def _drop(self, name: str) -> None:
        self._held_bytes -= len(self._files.pop(name).image.data)
