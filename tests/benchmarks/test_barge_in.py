"""The benchmark of speech over an answer measures what it says."""

import argparse
import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import barge_in
from sglang_omni.pipeline.request import AudioDelta, Finished, TranscriptDelta, Usage
from tests.api.fake import FakeBackend, Served, playing, serving, tone

pytestmark = pytest.mark.alone

SPEAKING = (TranscriptDelta("One. "), AudioDelta(tone()))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    def engines(self: FakeBackend) -> dict[str, Any]:
        counters = {"running": self.running, "waiting": 0, "active_slots": self.running}
        return {name: {"counters": counters} for name in ("thinker", "talker")}

    monkeypatch.setattr(FakeBackend, "engines", engines)
    with serving() as served:
        yield served


async def measure(server: Served, rounds: int = 2) -> list[dict[str, float]]:
    url = server.url.replace("http", "ws")
    return await barge_in.measure(argparse.Namespace(url=url, rounds=rounds))


async def endless(request: Any) -> Any:
    yield SPEAKING[0]
    while True:
        yield SPEAKING[1]
        await asyncio.sleep(0.05)


async def test_an_answer_is_silent_once_speech_was_found(server: Served) -> None:
    server.backend.script = endless
    rows = await measure(server)
    assert [row["last_sound_ms"] for row in rows] == [0, 0]
    # Two frames of 32 ms decide, and there is room for a busy machine.
    assert all(30 < row["heard_ms"] < 2000 for row in rows)
    assert all(0 <= row["stopped_ms"] < 2000 for row in rows)
    assert server.backend.running == 0


async def test_letting_go_slowly_is_seen(server: Served) -> None:
    async def reluctant(request: Any) -> Any:
        try:
            async for event in endless(request):
                yield event
        finally:
            await asyncio.sleep(0.3)

    server.backend.script = reluctant
    (row,) = await measure(server, rounds=1)
    assert row["stopped_ms"] > 290
    assert row["engines_idle_ms"] > 290


async def test_an_answer_that_ends_by_itself_is_no_measurement(server: Served) -> None:
    server.backend.script = playing(*SPEAKING, Finished("stop", Usage()))
    with pytest.raises(RuntimeError, match="ended by itself"):
        await measure(server)


def test_the_summary_has_median_and_worst() -> None:
    rows = [{"stopped_ms": value} for value in (1.0, 9.0, 2.0)]
    assert barge_in.summary(rows) == {"stopped_ms": {"median": 2.0, "worst": 9.0}}
