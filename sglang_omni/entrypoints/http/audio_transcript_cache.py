"""A cache of the transcripts of spoken answers, so that a later message may refer to an audio id.

Only transcripts are kept, in memory, for an hour and up to a total size. Audio is not kept.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

LIFETIME_S = 3600
MAX_TOTAL_CHARACTERS = 8 << 20


class AudioTranscriptCache:
    """Transcripts by tenant and audio id. Used by the event loop only."""

    def __init__(
        self, max_characters: int = MAX_TOTAL_CHARACTERS, clock: Callable[[], float] = time.time
    ) -> None:
        self._max_characters, self._clock = max_characters, clock
        # The expiry time and the transcript of each audio, the oldest first.
        self._transcripts: OrderedDict[tuple[str | None, str], tuple[float, str]] = OrderedDict()
        self._num_characters = 0

    def keep(self, tenant: str | None, audio_id: str, transcript: str) -> None:
        """Add a transcript, and evict old ones."""
        self._remove(tenant, audio_id)
        self._transcripts[tenant, audio_id] = self._clock() + LIFETIME_S, transcript
        self._num_characters += len(transcript)
        while self._transcripts and (self._is_full() or self._has_expired()):
            self._remove(*next(iter(self._transcripts)))

    def recall(self, tenant: str | None, audio_id: str) -> str | None:
        """Return a transcript, or None if it is unknown or expired."""
        expires_at, transcript = self._transcripts.get((tenant, audio_id), (0.0, ""))
        return transcript if expires_at > self._clock() else None

    def _is_full(self) -> bool:
        return self._num_characters > self._max_characters

    def _has_expired(self) -> bool:
        """Return whether the oldest transcript has expired."""
        expires_at, _ = next(iter(self._transcripts.values()))
        return expires_at <= self._clock()

    def _remove(self, tenant: str | None, audio_id: str) -> None:
        _, transcript = self._transcripts.pop((tenant, audio_id), (0.0, ""))
        self._num_characters -= len(transcript)
