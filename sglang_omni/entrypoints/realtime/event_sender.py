"""Queues the events for one client within a byte limit, and tracks the audio that was sent."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sglang_omni.entrypoints.realtime.items import JSON, make_id
from sglang_omni.entrypoints.realtime.playback import Playback, mark_stopped, record_sent
from sglang_omni.protocol.errors import OmniError

Send = Callable[[str], Awaitable[None]]
# Converts an event to the client's protocol version, to one event or none.
EventTransform = Callable[[JSON], Sequence[JSON]]


class SlowClient(OmniError):
    """A client read nothing within the time limit."""

    status = 408
    type = "invalid_request_error"
    code = "slow_reader"


class MonotonicClock(Protocol):
    """Source of the time."""

    def now(self) -> float:
        """Return the time in seconds since an arbitrary start."""
        ...

    async def sleep_until(self, deadline: float) -> None:
        """Return once `now` has reached `deadline`."""
        ...


@dataclass(frozen=True)
class _QueuedEvent:
    """An encoded event; for audio, also its item and its playing time."""

    frame: str
    item_id: str | None = None
    duration_ms: float = 0.0


class EventSender:
    """Sends events in order and tracks the playback of the audio that was sent.

    `put` never waits. Producers of many events call `wait_for_room` first. So beyond `max_bytes`
    the queue grows only by the direct replies to events that the client sends.
    """

    def __init__(
        self, max_bytes: int, stall_s: float, clock: MonotonicClock, transform: EventTransform
    ) -> None:
        """Create an empty queue.

        Args:
            max_bytes: Queued bytes from which `wait_for_room` waits.
            stall_s: Time limit for sending one event, in seconds.
            clock: Source of the time.
            transform: Converts events to the client's protocol version.
        """
        self._max_bytes, self._stall_s = max_bytes, stall_s
        self._clock, self._transform = clock, transform
        self._queue: deque[_QueuedEvent] = deque()
        self._queued_bytes = 0
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.playback: Playback | None = None
        self.last_audio_at: float | None = None

    @property
    def queued_bytes(self) -> int:
        """Return the number of bytes in the queue."""
        return self._queued_bytes

    def put(self, event_type: str, **fields: Any) -> None:
        """Queue an event."""
        self._enqueue(event_type, fields)

    def put_audio(self, item_id: str, duration_ms: float, fields: JSON) -> None:
        """Queue audio of an item that plays for `duration_ms`; `discard_audio` can remove it."""
        self._enqueue("response.output_audio.delta", fields, item_id, duration_ms)

    async def wait_for_room(self) -> None:
        """Wait until the queue holds less than its limit."""
        await self._has_room.wait()

    def discard_audio(self) -> set[str]:
        """Remove all queued audio. Return the ids of the items that it belonged to."""
        discarded = {entry.item_id for entry in self._queue if entry.item_id is not None}
        remaining = [entry for entry in self._queue if entry.item_id is None]
        self._queue = deque(remaining)
        self._queued_bytes = sum(len(entry.frame) for entry in remaining)
        self._update_room()
        return discarded

    def stop_playback(self) -> set[str]:
        """Remove all queued audio, and count the client's playback as stopped now.

        Returns:
            The ids of the items of which some audio may not have been played.
        """
        unplayed_ids = self.discard_audio()
        if self.playback is not None:
            self.playback = mark_stopped(self.playback, self._now_ms())
            unplayed_ids.add(self.playback.item_id)
        return unplayed_ids

    def played_ms(self, item_id: str) -> float:
        """Return how much of an item's audio can have been played by now at most."""
        playback = self._playback_of(item_id)
        return playback.played_ms(self._now_ms()) if playback else 0.0

    def sent_ms(self, item_id: str) -> float:
        """Return how much of an item's audio was sent."""
        playback = self._playback_of(item_id)
        return playback.sent_ms if playback else 0.0

    def playback_ends_at(self) -> float:
        """Return when the client has played all audio, sent and queued, in seconds of the clock."""
        queued_ms = sum(entry.duration_ms for entry in self._queue)
        return (max(self._playback_end_ms(), self._now_ms()) + queued_ms) / 1000

    async def run(self, send: Send) -> None:
        """Send events until cancelled. Raises `SlowClient`, and whatever `send` raises."""
        while True:
            while self._queue:
                await self._send_next(send)
            self._changed.clear()
            await self._changed.wait()

    async def flush(self, send: Send) -> None:
        """Send every queued event. Raises the same errors as `run`."""
        while self._queue:
            await self._send_next(send)

    async def _send_next(self, send: Send) -> None:
        entry = self._queue.popleft()
        self._queued_bytes -= len(entry.frame)
        self._update_room()
        if entry.item_id is not None:
            self._record_audio(entry.item_id, entry.duration_ms)
        try:
            async with asyncio.timeout(self._stall_s):
                await send(entry.frame)
        except TimeoutError:
            raise SlowClient(f"nothing was read for {self._stall_s:g} s") from None

    def _record_audio(self, item_id: str, duration_ms: float) -> None:
        """Record audio as it goes to the socket: from then on it cannot be discarded."""
        playback = self.playback
        if playback is None or playback.item_id != item_id:
            playback = Playback(item_id, ends_at_ms=self._playback_end_ms())
        self.playback = record_sent(playback, duration_ms, self._now_ms())
        self.last_audio_at = self._clock.now()

    def _enqueue(
        self, event_type: str, fields: JSON, item_id: str | None = None, duration_ms: float = 0.0
    ) -> None:
        event = {"type": event_type, "event_id": make_id("event"), **fields}
        for client_event in self._transform(event):
            frame = json.dumps(client_event, separators=(",", ":"))
            self._queue.append(_QueuedEvent(frame, item_id, duration_ms))
            self._queued_bytes += len(frame)
        self._update_room()
        self._changed.set()

    def _update_room(self) -> None:
        if self._queued_bytes < self._max_bytes:
            self._has_room.set()
        else:
            self._has_room.clear()

    def _playback_end_ms(self) -> float:
        """Return when the client has played the audio that was sent; items play one by one."""
        if self.playback is None or self.playback.stopped_at_ms is not None:
            return 0.0
        return self.playback.ends_at_ms

    def _now_ms(self) -> float:
        return self._clock.now() * 1000

    def _playback_of(self, item_id: str) -> Playback | None:
        playback = self.playback
        return playback if playback and playback.item_id == item_id else None
