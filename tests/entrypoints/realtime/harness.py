"""A session without sockets.

Its backend plays scripts, its detector hears loudness, and its clock is moved by hand.
"""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.protocol_version import GA, ProtocolVersion
from sglang_omni.entrypoints.realtime.session import RealtimeSession
from sglang_omni.media.vad import FRAME
from tests.entrypoints.http.fake import FakeBackend
from tests.entrypoints.realtime.sounds import RATE, pcm16, silence

OPTIONS = RealtimeOptions()


class ManualClock:
    """Time passes by `advance` only."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> float:
        return self.time

    async def sleep_until(self, moment: float) -> None:
        if moment <= self.time:
            return
        sleeper = (moment, asyncio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    async def advance(self, seconds: float) -> None:
        """Let time pass, and wake whoever waited for a moment in it, in order."""
        end = self.time + seconds
        while due := sorted((s for s in self._sleepers if s[0] <= end), key=lambda s: s[0]):
            self.time = max(self.time, due[0][0])
            due[0][1].set()
            await run_ready_tasks()
        self.time = end
        await run_ready_tasks()


class LoudnessDetector:
    """Whatever is loud is speech."""

    def __init__(self) -> None:
        self._pending = np.zeros(0, np.int16)

    def push(self, samples: np.ndarray) -> list[float]:
        pending = np.concatenate((self._pending, samples))
        frames = len(pending) // FRAME
        self._pending = pending[frames * FRAME :]
        levels = np.abs(pending[: frames * FRAME].reshape(frames, FRAME)).max(axis=1, initial=0)
        return [1.0 if level > 1000 else 0.0 for level in levels]


def loud(seconds: float) -> np.ndarray:
    """What the detector takes for speech: float32 at 24 kHz."""
    return (0.3 * np.sin(np.arange(int(seconds * RATE)) / 8)).astype(np.float32)


def base64_of(*sounds: np.ndarray) -> str:
    return base64.b64encode(b"".join(map(pcm16, sounds))).decode()


async def run_ready_tasks() -> None:
    """Let everything that can happen now happen; hops to a thread take no longer than this."""
    for _ in range(30):
        await asyncio.sleep(0)


class Talk:
    """One session, and every event it has sent."""

    def __init__(self, options: RealtimeOptions, protocol_version: ProtocolVersion) -> None:
        self.backend, self.clock = FakeBackend(), ManualClock()
        self.sender = EventSender(
            options.send_bytes, options.stall_seconds, self.clock, protocol_version.to_client
        )
        detector = LoudnessDetector()
        self.session = RealtimeSession(
            self.backend, options, self.sender, detector, self.clock, protocol_version, "me"
        )
        self.events: list[dict[str, Any]] = []
        self.reading = asyncio.Event()
        self.reading.set()

    async def take(self, frame: str) -> None:
        """The client's side of the socket; while `reading` is not set, it does not read."""
        await self.reading.wait()
        self.events.append(json.loads(frame))

    async def send(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """Send an event; returns what came of it as far as it came at once."""
        before = len(self.events)
        await self.session.handle(json.dumps({"type": kind, **fields}))
        await run_ready_tasks()
        return self.events[before:]

    async def say(self, *sounds: np.ndarray) -> list[dict[str, Any]]:
        return await self.send("input_audio_buffer.append", audio=base64_of(*sounds))

    async def turn(self) -> list[dict[str, Any]]:
        """A second of speech and what ends it."""
        return await self.say(loud(1.0), silence(0.6))

    async def write(self, text: str, **fields: Any) -> list[dict[str, Any]]:
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        return await self.send("conversation.item.create", item=item, **fields)

    async def update(self, **session: Any) -> list[dict[str, Any]]:
        return await self.send("session.update", session={"type": "realtime", **session})

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.001)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def error(self) -> dict[str, Any]:
        """The last error."""
        error: dict[str, Any] = self.of("error")[-1]["error"]
        return error


@asynccontextmanager
async def talking(protocol_version: ProtocolVersion = GA, **options: Any) -> AsyncIterator[Talk]:
    """A session that is read, and closed at the end."""
    talk = Talk(replace(OPTIONS, **options), protocol_version)
    talk.session.start()
    writing = asyncio.create_task(talk.sender.run(talk.take))
    await run_ready_tasks()
    try:
        yield talk
    finally:
        await talk.session.close()
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Types in order, runs of equal ones as one."""
    names = [event["type"] for event in events]
    return [
        name
        for place, name in enumerate(names)
        if place == 0 or not name.endswith("delta") or name not in names[max(0, place - 2) : place]
    ]
