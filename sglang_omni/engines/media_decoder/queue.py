"""Who waits for a decoder, and whose turn it is."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from sglang_omni.admission.policy import Reservation, select_next, select_rejected
from sglang_omni.media.limits import Kind
from sglang_omni.protocol.errors import Overloaded

T = TypeVar("T")


class DecoderQueue(Generic[T]):
    """Hands decoders to requests, fairly between tenants. Lives on the event loop.

    The next one is of the tenant with the fewest at work, of these the one served least recently.
    At most `max_waiting` wait; beyond, the newest of the tenant with the most is refused. At most
    `max_videos` videos are at work at once.
    """

    def __init__(self, max_waiting: int, max_videos: int) -> None:
        self._max_waiting, self._max_videos = max_waiting, max_videos
        self._numbers = itertools.count()
        self._admissions = itertools.count()
        # The number of each tenant's latest admission.
        self._served: dict[str | None, int] = {}
        self._waiting: dict[Reservation, asyncio.Future[T]] = {}
        self._videos: set[Reservation] = set()
        self._active: dict[T, Reservation] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @contextmanager
    def join(self, kind: Kind, tenant: str | None) -> Iterator[asyncio.Future[T]]:
        """Wait in the queue during the body, which awaits the future for its decoder.

        The future fails with `Overloaded` where the queue has no place.
        """
        claim = Reservation(next(self._numbers), tenant)
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting[claim] = turn
        if kind == "video":
            self._videos.add(claim)
        try:
            yield turn
        finally:
            if self._waiting.pop(claim, None) is not None:
                self._videos.discard(claim)

    def assign(self, decoder: T) -> bool:
        """Give an idle decoder to whoever is next. Returns whether anybody took it."""
        claim = select_next(self._servable(), self._active.values(), self._served)
        if claim is not None:
            self._active[decoder] = claim
            self._served[claim.tenant] = next(self._admissions)
            self._waiting.pop(claim).set_result(decoder)
        return claim is not None

    def leave(self, decoder: T) -> None:
        """Note that a decoder is idle again."""
        self._videos.discard(self._active.pop(decoder))

    def fail(self, error: Exception) -> None:
        """End every wait with an error."""
        for claim in list(self._waiting):
            self._refuse(claim, error)

    def _servable(self) -> list[Reservation]:
        waiting = [claim for claim, turn in self._waiting.items() if not turn.done()]
        videos_at_work = sum(claim in self._videos for claim in self._active.values())
        if videos_at_work < self._max_videos:
            return waiting
        return [claim for claim in waiting if claim not in self._videos]

    def refuse_excess(self) -> None:
        """Refuse whoever the queue has no place for."""
        claim = select_rejected(list(self._waiting), self._max_waiting)
        if claim is not None:
            count = len(self._waiting) - 1
            self._refuse(claim, Overloaded(f"{count} media already wait to be decoded"))

    def _refuse(self, claim: Reservation, error: Exception) -> None:
        self._videos.discard(claim)
        turn = self._waiting.pop(claim)
        if not turn.done():
            turn.set_exception(error)
