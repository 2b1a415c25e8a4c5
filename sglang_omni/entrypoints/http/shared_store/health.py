"""Whether the shared store answers: logged once per outage, counted and shown."""

import logging
import time
from collections.abc import Callable
from typing import Any, Literal

from sglang_omni.observability.shared_store_metrics import SharedStoreMetrics

LOGGER = logging.getLogger(__name__)

# Redis that rejects what it is told, because it is full or a user may not, does so for each write.
REJECTION_LOG_INTERVAL_S = 60.0

Operation = Literal["read", "write", "delete"]


class SharedStoreHealth:
    """The state of the shared store. Used by the event loop only.

    Errors are named by their types: their messages may contain what a user sent.
    """

    def __init__(self, metrics: SharedStoreMetrics, clock: Callable[[], float] = time.time) -> None:
        self.is_up = True
        self._metrics, self._clock = metrics, clock
        self._since = clock()
        self._last_error: str | None = None
        self._last_error_at: float | None = None
        self._rejection_logged_at = float("-inf")
        metrics.up.set(1)

    def record_failure(self, operation: Operation) -> None:
        """Count an operation that failed, whatever the reason."""
        self._metrics.failures.labels(operation).inc()

    def record_outage(self, error: BaseException) -> None:
        """Note that the store does not answer."""
        self._note_error(error)
        if self.is_up:
            LOGGER.warning(
                "the shared store does not answer (%s): answers are not stored, and requests that "
                "refer to earlier ones get 503",
                self._last_error,
            )
            self._switch(False)

    def record_rejection(self, error: BaseException) -> None:
        """Note that the store answers, but rejects an operation."""
        self._note_error(error)
        if self._clock() - self._rejection_logged_at >= REJECTION_LOG_INTERVAL_S:
            self._rejection_logged_at = self._clock()
            LOGGER.warning("the shared store rejects operations (%s)", self._last_error)

    def record_answer(self) -> None:
        """Note that the store answers."""
        if not self.is_up:
            outage_s = self._clock() - self._since
            self._switch(True)
            LOGGER.warning("the shared store answers again, after %.0f s", outage_s)

    def describe(self) -> dict[str, Any]:
        """Return the field of `/health`, in the form of an engine's state."""
        state: dict[str, Any] = {
            "state": "ready" if self.is_up else "unavailable",
            "since": self._since,
            "last_error": self._last_error,
            "last_error_at": self._last_error_at,
        }
        return {"shared_store": state}

    def _note_error(self, error: BaseException) -> None:
        self._last_error, self._last_error_at = type(error).__name__, self._clock()

    def _switch(self, is_up: bool) -> None:
        self.is_up, self._since = is_up, self._clock()
        self._metrics.up.set(int(is_up))
