"""A cache of the transcripts of spoken answers, so that a later message may refer to an audio id.

Only transcripts are kept, in memory, for an hour and up to a total size. Audio is not kept.
"""

import time
from collections.abc import Callable

from sglang_omni.caching.lru_cache import LruCache

LIFETIME_S = 3600
MAX_TOTAL_CHARACTERS = 8 << 20


class AudioTranscriptCache:
    """Transcripts by tenant and audio id. Used by the event loop only."""

    def __init__(
        self, max_characters: int = MAX_TOTAL_CHARACTERS, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        # The expiry time and the transcript of each audio, the oldest first.
        self._transcripts: LruCache[tuple[str | None, str], tuple[float, str]] = LruCache(
            max_weight=max_characters, get_weight=lambda entry: len(entry[1])
        )

    def keep(self, tenant: str | None, audio_id: str, transcript: str) -> None:
        """Add a transcript, and evict old ones."""
        self._transcripts.put((tenant, audio_id), (self._clock() + LIFETIME_S, transcript))
        while (oldest := self._transcripts.oldest()) and oldest[1][0] <= self._clock():
            self._transcripts.pop(oldest[0])

    def recall(self, tenant: str | None, audio_id: str) -> str | None:
        """Return a transcript, or None if it is unknown or expired."""
        # A peek, so that entries stay ordered by their expiry.
        expires_at, transcript = self._transcripts.peek((tenant, audio_id)) or (0.0, "")
        return transcript if expires_at > self._clock() else None
