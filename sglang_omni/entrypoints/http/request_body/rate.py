"""How fast bodies are read: uploads at full speed would leave the event loop no time for others."""

import asyncio
import time

# Saved up while nothing is read, so that an upload of ordinary size is read at once.
BURST_S = 0.1
# Shorter waits than this are put off until they add up to it.
MIN_WAIT_S = 0.005


class BodyRate:
    """Spreads reading over time, `bytes_per_s` for all large bodies together."""

    def __init__(self, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        # When all that was read so far would have been read at that rate.
        self._due_at = 0.0

    async def wait(self, size: int) -> None:
        """Count `size` bytes that were read, and wait until more may be read."""
        now = time.monotonic()
        self._due_at = max(self._due_at, now - BURST_S) + size / self._bytes_per_s
        if (wait_s := self._due_at - now) >= MIN_WAIT_S:
            await asyncio.sleep(wait_s)
