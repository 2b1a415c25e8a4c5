"""A fair queue of requests that wait for a media decoder."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from sglang_omni.media.limits import Kind
from sglang_omni.protocol.errors import Overloaded
from sglang_omni.queueing.policy import Reservation, select_next, select_rejected

T = TypeVar("T")


class DecoderQueue(Generic[T]):
    """Assigns decoders to requests, fairly between tenants. Used on the event loop only.

    The next request belongs to the tenant with the fewest busy decoders, and among those to the
    least recently served. At most `max_waiting` requests wait; beyond that, the newest request of
    the tenant with the most is rejected. At most `max_videos` videos are decoded at once.
    """

    def __init__(self, max_waiting: int, max_videos: int) -> None:
        self._max_waiting, self._max_videos = max_waiting, max_videos
        self._sequence = itertools.count()
        self._grants = itertools.count()
        # The sequence number of each tenant's latest grant.
        self._last_served: dict[str | None, int] = {}
        self._waiting: dict[Reservation, asyncio.Future[T]] = {}
        self._videos: set[Reservation] = set()
        self._active: dict[T, Reservation] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @contextmanager
    def join(self, kind: Kind, tenant: str | None) -> Iterator[asyncio.Future[T]]:
        """Queue a request during the body, which awaits the future for its decoder.

        The future fails with `Overloaded` if the queue is full.
        """
        reservation = Reservation(next(self._sequence), tenant)
        grant: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting[reservation] = grant
        if kind == "video":
            self._videos.add(reservation)
        try:
            yield grant
        finally:
            if self._waiting.pop(reservation, None) is not None:
                self._videos.discard(reservation)

    def assign(self, decoder: T) -> bool:
        """Assign an idle decoder to the next request. Return whether there was one."""
        reservation = select_next(self._find_eligible(), self._active.values(), self._last_served)
        if reservation is not None:
            self._active[decoder] = reservation
            self._last_served[reservation.tenant] = next(self._grants)
            self._waiting.pop(reservation).set_result(decoder)
        return reservation is not None

    def release(self, decoder: T) -> None:
        """Record that a decoder is idle again."""
        self._videos.discard(self._active.pop(decoder))

    def fail_all(self, error: Exception) -> None:
        """Fail every waiting request with an error."""
        for reservation in list(self._waiting):
            self._reject(reservation, error)

    def _find_eligible(self) -> list[Reservation]:
        waiting = [reservation for reservation, grant in self._waiting.items() if not grant.done()]
        num_active_videos = sum(
            reservation in self._videos for reservation in self._active.values()
        )
        if num_active_videos < self._max_videos:
            return waiting
        return [reservation for reservation in waiting if reservation not in self._videos]

    def reject_excess(self) -> None:
        """Reject a request if the queue is over its limit."""
        reservation = select_rejected(list(self._waiting), self._max_waiting)
        if reservation is not None:
            count = len(self._waiting) - 1
            self._reject(
                reservation,
                Overloaded(f"media decoding is at capacity: {count} requests wait; retry later"),
            )

    def _reject(self, reservation: Reservation, error: Exception) -> None:
        self._videos.discard(reservation)
        grant = self._waiting.pop(reservation)
        if not grant.done():
            grant.set_exception(error)
