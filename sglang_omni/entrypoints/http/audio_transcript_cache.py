"""Transcripts of spoken answers, so that a later message may refer to an audio id.

Only transcripts are kept, for an hour. Audio is not kept.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from sglang_omni.caching.lru_cache import LruCache

LIFETIME_S = 3600
MAX_TOTAL_CHARACTERS = 8 << 20


class AudioTranscriptCache(Protocol):
    """Keeps transcripts. Each is known to the tenant of its answer only; None is also a tenant."""

    async def keep(self, tenant: str | None, audio_id: str, transcript: str) -> bool:
        """Keep a transcript, and return whether it was kept."""

    async def recall(self, tenant: str | None, audio_ids: Collection[str]) -> Mapping[str, str]:
        """Return the transcripts of those ids that are known and have not expired."""


class MemoryAudioTranscriptCache:
    """Transcripts by tenant and audio id, in memory, up to a total size.

    Used by the event loop only.
    """

    def __init__(
        self, max_characters: int = MAX_TOTAL_CHARACTERS, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        # The expiry time and the transcript of each audio, the oldest first.
        self._transcripts: LruCache[tuple[str | None, str], tuple[float, str]] = LruCache(
            max_weight=max_characters, get_weight=lambda entry: len(entry[1])
        )

    async def keep(self, tenant: str | None, audio_id: str, transcript: str) -> bool:
        """Add a transcript, evict old ones, and return whether it is not too long to be kept."""
        self._transcripts.put((tenant, audio_id), (self._clock() + LIFETIME_S, transcript))
        while (oldest := self._transcripts.oldest()) and oldest[1][0] <= self._clock():
            self._transcripts.pop(oldest[0])
        return self._transcripts.peek((tenant, audio_id)) is not None

    async def recall(self, tenant: str | None, audio_ids: Collection[str]) -> Mapping[str, str]:
        """Return the transcripts of those ids that are known and have not expired."""
        found: dict[str, str] = {}
        for audio_id in audio_ids:
            # A peek, so that entries stay ordered by their expiry.
            expires_at, transcript = self._transcripts.peek((tenant, audio_id)) or (0.0, "")
            if expires_at > self._clock():
                found[audio_id] = transcript
        return found
