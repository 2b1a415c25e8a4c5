"""A rate limit for reading bodies, so that fast uploads do not starve the event loop."""

import asyncio
import time

# Unused time that accumulates, so that an upload of ordinary size is read without a wait.
BURST_S = 0.1
# Shorter waits accumulate until they reach this.
MIN_WAIT_S = 0.005


class BodyRate:
    """A read rate of `bytes_per_s` that all large bodies share."""

    def __init__(self, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        # The time at which the bytes read so far are due at that rate.
        self._due_at = 0.0

    async def wait(self, num_bytes: int) -> None:
        """Count `num_bytes` as read, and wait until more may be read."""
        now = time.monotonic()
        self._due_at = max(self._due_at, now - BURST_S) + num_bytes / self._bytes_per_s
        if (wait_s := self._due_at - now) >= MIN_WAIT_S:
            await asyncio.sleep(wait_s)
