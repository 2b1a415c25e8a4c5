"""The benchmark of speech over an answer measures what it says."""

import argparse
import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.serving import barge_in
from sglang_omni.pipeline.request import AudioDelta, Finished, TranscriptDelta, Usage
from tests.entrypoints.http.fake import FakeBackend, Served, playing, serving, tone

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
    made, _ = await barge_in.measure(argparse.Namespace(url=url, rounds=rounds))
    return made


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


async def test_an_answer_that_ends_by_itself_is_no_measurement(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barge_in, "MAX_RETRIES", 1)
    server.backend.script = playing(*SPEAKING, Finished("stop", Usage()))
    with pytest.raises(RuntimeError, match="ended by itself"):
        await measure(server, rounds=1)


async def test_a_round_whose_answer_had_ended_is_made_again_and_counted(server: Served) -> None:
    short, asked = playing(*SPEAKING, Finished("stop", Usage())), 0

    async def short_at_first(request: Any) -> Any:
        nonlocal asked
        asked += 1
        async for event in short(request) if asked == 1 else endless(request):
            yield event

    server.backend.script = short_at_first
    url = server.url.replace("http", "ws")
    rows, again = await barge_in.measure(argparse.Namespace(url=url, rounds=1))
    assert len(rows) == again == 1


def test_the_summary_has_median_and_worst() -> None:
    rows = [{"stopped_ms": value} for value in (1.0, 9.0, 2.0)]
    assert barge_in.summarise(rows) == {"stopped_ms": {"median": 2.0, "worst": 9.0}}
