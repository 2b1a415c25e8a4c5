"""Rests between the steps of images while answers on the same device wait for their first output.

A step of a large image takes all of a GPU for tenths of a second, and each of the many small
kernels that an answer needs waits for one of its large ones.
"""

import time

from sglang_omni.engines.runtime.shared_count import SharedCount

LOOK_S = 0.002
"""How often a rest looks whether answers still wait, in seconds."""


class Rest:
    """Rests after each step for at most `share` times as long as it took."""

    def __init__(self, waiting: SharedCount | None, share: float) -> None:
        """Take the count of answers that wait, None if none has the engine's device."""
        self._waiting, self._share = waiting, share
        self._until = 0.0

    def end_step(self, took_s: float) -> None:
        """Begin a rest after a step of `took_s` seconds; results are sent meanwhile."""
        self._until = time.monotonic() + took_s * self._share

    def finish(self) -> float:
        """Wait until the rest is over, or no answer waits. Returns the seconds of waiting."""
        began_at, rested_s = time.monotonic(), 0.0
        while self._goes_on():
            time.sleep(LOOK_S)
            rested_s = time.monotonic() - began_at
        return rested_s

    def _goes_on(self) -> bool:
        answers = 0 if self._waiting is None else self._waiting.value
        return answers > 0 and time.monotonic() < self._until
