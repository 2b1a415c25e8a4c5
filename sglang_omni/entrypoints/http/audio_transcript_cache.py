"""What was said in spoken answers, so that a later turn may cite one by its audio's id alone.

Only the words are remembered, in memory, for an hour and within a bound: the audio itself is not.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

LIFETIME_S = 3600
MAX_TOTAL_CHARACTERS = 8 << 20


class AudioTranscriptCache:
    """Transcripts by the audio's id, each for its tenant alone. Owned by the event loop."""

    def __init__(
        self, most_characters: int = MAX_TOTAL_CHARACTERS, clock: Callable[[], float] = time.time
    ) -> None:
        self._most, self._clock = most_characters, clock
        self._said: OrderedDict[tuple[str | None, str], tuple[float, str]] = OrderedDict()
        self._characters = 0

    def keep(self, tenant: str | None, audio_id: str, transcript: str) -> None:
        """Remember an answer, and forget old ones for it."""
        self._forget(tenant, audio_id)
        self._said[tenant, audio_id] = self._clock() + LIFETIME_S, transcript
        self._characters += len(transcript)
        while self._said and (self._characters > self._most or self._oldest_is_over()):
            self._forget(*next(iter(self._said)))

    def recall(self, tenant: str | None, audio_id: str) -> str | None:
        """What was said, None where it is not known or no longer."""
        ends_at, transcript = self._said.get((tenant, audio_id), (0.0, ""))
        return transcript if ends_at > self._clock() else None

    def _oldest_is_over(self) -> bool:
        return next(iter(self._said.values()))[0] <= self._clock()

    def _forget(self, tenant: str | None, audio_id: str) -> None:
        _, transcript = self._said.pop((tenant, audio_id), (0.0, ""))
        self._characters -= len(transcript)
