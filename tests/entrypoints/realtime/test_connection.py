"""The connection of a session: how it ends, and what a slow client costs."""

import asyncio
import json
from dataclasses import replace
from typing import Any

from sglang_omni.entrypoints.realtime.connection import ClientLeft, Connection
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.protocol_version import GA
from sglang_omni.entrypoints.realtime.session import RealtimeSession
from sglang_omni.pipeline.request import Finished, TextDelta, Usage
from sglang_omni.protocol.errors import InvalidRequest
from tests.entrypoints.http.fake import FakeBackend, hanging, playing
from tests.entrypoints.realtime.harness import (
    OPTIONS,
    LoudnessDetector,
    ManualClock,
    run_ready_tasks,
)


class FakeSocket:
    """The server's end of a connection, played by a test."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[Any] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.closed: tuple[int, str] | None = None
        self.reading = True

    async def receive(self) -> str:
        frame = await self.incoming.get()
        if isinstance(frame, Exception):
            raise frame
        return frame

    async def send(self, frame: str) -> None:
        if not self.reading:
            await asyncio.sleep(3600)
        self.sent.append(json.loads(frame))

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)


class Running:
    """A connection at work."""

    def __init__(self, **options: Any) -> None:
        settings = replace(OPTIONS, **options)
        self.socket, self.clock, self.backend = FakeSocket(), ManualClock(), FakeBackend()
        sender = EventSender(settings.send_bytes, settings.stall_seconds, self.clock, GA.to_client)
        detector = LoudnessDetector()
        session = RealtimeSession(self.backend, settings, sender, detector, self.clock)
        draining = self.backend.draining
        connection = Connection(self.socket, sender, session, settings, self.clock, draining)
        self.task = asyncio.create_task(connection.run())

    def put(self, kind: str, **fields: Any) -> None:
        self.socket.incoming.put_nowait(json.dumps({"type": kind, **fields}))

    async def ended(self) -> None:
        await asyncio.wait_for(self.task, 5)
        assert self.backend.running == 0
        # Nothing of the session is left but this test.
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_client_that_leaves_ends_everything() -> None:
    running = Running()
    running.backend.script = hanging()
    running.put("response.create")
    await run_ready_tasks()
    assert running.backend.running == 1
    running.socket.incoming.put_nowait(ClientLeft())
    await running.ended()
    assert running.socket.closed is None


async def test_a_frame_that_is_not_text_is_an_error_that_is_survived() -> None:
    running = Running()
    running.socket.incoming.put_nowait(InvalidRequest("an event is a text frame"))
    running.put("input_audio_buffer.clear")
    await run_ready_tasks()
    kinds = [event["type"] for event in running.socket.sent]
    assert kinds[2:] == ["error", "input_audio_buffer.cleared"]
    running.socket.incoming.put_nowait(ClientLeft())
    await running.ended()


async def test_a_session_ends_after_its_time_however_busy() -> None:
    running = Running(max_seconds=60, idle_seconds=50)
    for _ in range(5):
        await run_ready_tasks()
        await running.clock.advance(11)
        running.put("input_audio_buffer.clear")
    await run_ready_tasks()
    assert not running.task.done()
    await running.clock.advance(11)
    await running.ended()
    assert running.socket.sent[-1]["error"]["code"] == "session_expired"
    assert "60 s" in running.socket.sent[-1]["error"]["message"]
    assert running.socket.closed == (1001, "session_expired")


async def test_an_idle_session_ends_but_not_one_that_is_used() -> None:
    running = Running(max_seconds=1000, idle_seconds=50)
    await run_ready_tasks()
    await running.clock.advance(40)
    running.put("input_audio_buffer.clear")
    await run_ready_tasks()
    await running.clock.advance(40)
    assert not running.task.done()
    await running.clock.advance(11)
    await running.ended()
    assert "no event was received for 50 s" in running.socket.sent[-1]["error"]["message"]


async def test_a_reader_that_takes_nothing_is_closed() -> None:
    running = Running(stall_seconds=0.1)
    running.socket.reading = False
    await running.ended()
    assert running.socket.closed == (1008, "slow_reader")


async def test_a_slow_reader_is_not_listened_to_and_its_answer_pauses() -> None:
    running = Running(send_bytes=2000, stall_seconds=3600)
    produced = 0

    async def endless(request: Any) -> Any:
        nonlocal produced
        while True:
            produced += 1
            yield TextDelta("x" * 100)
            await asyncio.sleep(0)

    running.backend.script = endless
    running.put("session.update", session={"output_modalities": ["text"]})
    await run_ready_tasks()
    running.socket.reading = False
    running.put("response.create")
    for _ in range(20):
        running.put("input_audio_buffer.clear")
        await run_ready_tasks()
    assert produced < 20
    assert running.socket.incoming.qsize() >= 18
    running.backend.script = playing(Finished("stop", Usage()))
    running.task.cancel()
    await asyncio.wait((running.task,))
    assert running.backend.running == 0


async def test_a_server_that_drains_tells_its_sessions_once_they_were_answered() -> None:
    running = Running()
    running.backend.script = hanging()
    running.put("response.create")
    await run_ready_tasks()
    running.backend.draining.set()
    await run_ready_tasks()
    assert not running.task.done(), "an answer under way may end"
    running.put("response.cancel")
    await running.ended()
    kinds = [event["type"] for event in running.socket.sent]
    assert kinds.index("response.done") < kinds.index("error")
    assert running.socket.sent[-1]["error"]["code"] == "draining"
    assert running.socket.closed == (1001, "draining")
