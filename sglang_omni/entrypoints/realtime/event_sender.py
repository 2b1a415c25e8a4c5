"""What waits to be sent to one client, within bounds."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sglang_omni.entrypoints.realtime.items import JSON, new_id
from sglang_omni.entrypoints.realtime.playback import Playback, sent, silenced
from sglang_omni.protocol.errors import OmniError

Send = Callable[[str], Awaitable[None]]
# How an event is spelled for this client: usually as it is.
EventTransform = Callable[[JSON], Sequence[JSON]]


class SlowClient(OmniError):
    """A client took nothing for too long."""

    status = 408
    type = "invalid_request_error"
    code = "slow_reader"


class MonotonicClock(Protocol):
    """Where the time comes from."""

    def now(self) -> float:
        """Seconds since some moment."""
        ...

    async def sleep_until(self, moment: float) -> None:
        """Return once `now` has reached `moment`."""
        ...


@dataclass(frozen=True)
class _Waiting:
    """An encoded event; for sound, the item that it belongs to and how long it plays."""

    frame: str
    item_id: str | None = None
    duration_ms: float = 0.0


class EventSender:
    """Owns the order of events and the account of the sound that was sent.

    `put` never waits; whoever makes much waits for `room` first, so that beyond `budget` bytes
    only as much is added as the client itself asks for while it is still being read.
    """

    def __init__(
        self, budget: int, stall_s: float, clock: MonotonicClock, spell: EventTransform
    ) -> None:
        """`stall_s`: how long one event may take to leave."""
        self._budget, self._stall_s = budget, stall_s
        self._clock, self._spell = clock, spell
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.playback: Playback | None = None
        self.last_sound_at: float | None = None

    @property
    def bytes(self) -> int:
        """Bytes that wait."""
        return self._bytes

    def put(self, kind: str, **fields: Any) -> None:
        """Queue an event."""
        self._queue(kind, fields)

    def put_sound(self, item_id: str, duration_ms: float, fields: JSON) -> None:
        """Queue sound of an item, `duration_ms` long; `discard_sound` takes it back."""
        self._queue("response.output_audio.delta", fields, item_id, duration_ms)

    async def room(self) -> None:
        """Wait until less than the budget waits."""
        await self._room.wait()

    def discard_sound(self) -> set[str]:
        """Take back all sound that has not left; returns the items that it was of."""
        discarded = {entry.item_id for entry in self._waiting if entry.item_id is not None}
        kept = [entry for entry in self._waiting if entry.item_id is None]
        self._waiting = deque(kept)
        self._bytes = sum(len(entry.frame) for entry in kept)
        self._mark_room()
        return discarded

    def stop_playback(self) -> set[str]:
        """Take back all sound that has not left, and count the listener as silent from now.

        Returns the items of which something may not have been heard.
        """
        unheard = self.discard_sound()
        if self.playback is not None:
            self.playback = silenced(self.playback, self._now_ms())
            unheard.add(self.playback.item_id)
        return unheard

    def heard_ms(self, item_id: str) -> float:
        """The most of an item's sound that can have been heard by now."""
        playback = self._playback_of(item_id)
        return playback.heard_ms(self._now_ms()) if playback else 0.0

    def sent_ms(self, item_id: str) -> float:
        """How much of an item's sound has left."""
        playback = self._playback_of(item_id)
        return playback.sent_ms if playback else 0.0

    def plays_until(self) -> float:
        """The second at which the listener has heard all that was sent."""
        waiting = sum(entry.duration_ms for entry in self._waiting)
        return (max(self._silent_from(), self._now_ms()) + waiting) / 1000

    async def run(self, send: Send) -> None:
        """Send what comes, for ever. Raises `SlowClient`, and what `send` raises."""
        while True:
            while self._waiting:
                await self._send_one(send)
            self._changed.clear()
            await self._changed.wait()

    async def flush(self, send: Send) -> None:
        """Send what still waits. Raises as `run` does."""
        while self._waiting:
            await self._send_one(send)

    async def _send_one(self, send: Send) -> None:
        entry = self._waiting.popleft()
        self._bytes -= len(entry.frame)
        self._mark_room()
        if entry.item_id is not None:
            self._count(entry.item_id, entry.duration_ms)
        try:
            async with asyncio.timeout(self._stall_s):
                await send(entry.frame)
        except TimeoutError:
            raise SlowClient(f"nothing was read for {self._stall_s:g} s") from None

    def _count(self, item_id: str, duration_ms: float) -> None:
        """Counted as it goes to the socket: from then on it cannot be taken back."""
        known = self.playback
        if known is None or known.item_id != item_id:
            known = Playback(item_id, ends_at=self._silent_from())
        self.playback = sent(known, duration_ms, self._now_ms())
        self.last_sound_at = self._clock.now()

    def _queue(
        self, kind: str, fields: JSON, item_id: str | None = None, duration_ms: float = 0.0
    ) -> None:
        event = {"type": kind, "event_id": new_id("event"), **fields}
        for spelled in self._spell(event):
            frame = json.dumps(spelled, separators=(",", ":"))
            self._waiting.append(_Waiting(frame, item_id, duration_ms))
            self._bytes += len(frame)
        self._mark_room()
        self._changed.set()

    def _mark_room(self) -> None:
        if self._bytes < self._budget:
            self._room.set()
        else:
            self._room.clear()

    def _silent_from(self) -> float:
        """When the listener has played what it has, one item after the other."""
        if self.playback is None or self.playback.silenced_at is not None:
            return 0.0
        return self.playback.ends_at

    def _now_ms(self) -> float:
        return self._clock.now() * 1000

    def _playback_of(self, item_id: str) -> Playback | None:
        known = self.playback
        return known if known and known.item_id == item_id else None
