"""Drawn images that clients fetch by URL, for a limited time. They are kept in memory."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from sglang_omni.media.image_file import ImageFileType


@dataclass(frozen=True)
class StoredImage:
    """A file, and when it expires, in seconds of the store's clock."""

    data: bytes
    file_type: ImageFileType
    expires_at: float


class ImageStore:
    """Files by name. A name has 128 random bits: whoever knows it may fetch the file."""

    def __init__(
        self, max_bytes: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Keep files for `seconds`, and at most `max_bytes` of them, but at least the latest."""
        self._max_bytes, self._seconds, self._clock = max_bytes, seconds, clock
        # In the order in which they expire.
        self._files: dict[str, StoredImage] = {}
        self._held_bytes = 0

    def add(self, data: bytes, file_type: ImageFileType) -> str:
        """Store a file, and return its name."""
        name = f"{secrets.token_urlsafe(16)}.{file_type}"
        self._files[name] = StoredImage(data, file_type, self._clock() + self._seconds)
        self._held_bytes += len(data)
        self._drop_expired()
        while self._held_bytes > self._max_bytes and len(self._files) > 1:
            self._drop(next(iter(self._files)))
        return name

    def get(self, name: str) -> StoredImage | None:
        """Return a file; None if there is none or it has expired."""
        self._drop_expired()
        return self._files.get(name)

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._files:
            name, oldest = next(iter(self._files.items()))
            if oldest.expires_at > now:
                return
            self._drop(name)

    def _drop(self, name: str) -> None:
        self._held_bytes -= len(self._files.pop(name).data)
