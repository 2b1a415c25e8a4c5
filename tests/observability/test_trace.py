"""Stages of a request, and where their traces go."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from sglang_omni.observability import trace as traces
from sglang_omni.observability.playback_stats import PlaybackStats, heard
from sglang_omni.observability.timeline import as_json, draw
from sglang_omni.observability.trace import Span, Trace, current_trace, stage, tracing
from sglang_omni.observability.trace_recorder import KEPT, TraceRecorder


async def words(count: int) -> AsyncGenerator[str, None]:
    with stage("words") as span:
        for _ in range(count):
            span.output()
            yield "word"


async def test_a_stage_has_its_times_and_outputs_in_whatever_task_it_runs() -> None:
    async def read() -> None:
        [word async for word in words(3)]

    with tracing(Trace("1")) as trace:
        await asyncio.gather(read(), read())
    assert [(span.name, span.outputs, span.error) for span in trace.spans] == [
        ("words", 3, None)
    ] * 2
    for span in trace.spans:
        assert span.first is not None and span.ended is not None
        assert span.started_at <= span.first <= span.ended
    assert current_trace() is None


async def test_a_stage_says_how_it_ended() -> None:
    with tracing(Trace("1")) as trace:
        with pytest.raises(LookupError), stage("failing"):
            raise LookupError("the word of a user")
        async with aclosing(words(3)) as cut:
            await anext(cut)
    assert [span.error for span in trace.spans] == ["LookupError", "cancelled"]


async def test_a_stage_outside_a_request_is_nobodys() -> None:
    with stage("alone") as span:
        span.output()
    assert span.ended is not None


def test_a_very_long_request_does_not_grow_without_bound() -> None:
    with tracing(Trace("1")) as trace:
        for _ in range(traces.MOST_SPANS + 3):
            with stage("talker"):
                pass
    assert (len(trace.spans), trace.spans_left_out) == (traces.MOST_SPANS, 3)


@pytest.mark.parametrize(
    ("audio", "expected"),
    [
        ([], None),
        # Made at once, and at ten times real time.
        ([(1.0, 100)], PlaybackStats(1.0, 10.0, 0.0, 0.1)),
        ([(1.0, 10), (2.0, 10)], PlaybackStats(1.0, 2.0, 0.0, 1.0)),
        # The second piece is two seconds late, the third in time for what is played by then.
        ([(1.0, 10), (4.0, 10), (5.0, 10)], PlaybackStats(1.0, 3.0, 2.0, 5 / 3)),
    ],
)
def test_speech_is_judged_as_a_listener_hears_it(
    audio: list[tuple[float, int]], expected: PlaybackStats | None
) -> None:
    assert heard(audio, started_at=0.0, rate=10) == expected


def test_an_observer_keeps_the_latest_and_forgets_their_pieces() -> None:
    seen: list[Trace] = []
    observer = TraceRecorder(lambda: 10, [seen.append])
    for number in range(KEPT + 5):
        trace = observer.begin(str(number))
        trace.spoke(5)
        observer.end(trace, "POST /v1/audio/speech")
    assert observer.find("4") is None
    kept = observer.find("5")
    assert kept is not None and kept.audio == [] and kept.sound is not None
    assert kept.sound.audio_s == 0.5
    assert len(seen) == KEPT + 5


def test_a_timeline_is_drawn_to_scale() -> None:
    trace = Trace("abc", started_at=100.0, route="POST /v1/audio/speech", status=200, ended=102.0)
    trace.spans = [
        Span("preprocess", 100.0, ended=101.0),
        Span("talker", 101.0, first=101.5, ended=102.0, outputs=7, error="cancelled"),
        Span("waiting", 101.0),
    ]
    trace.sound = PlaybackStats(1.5, 4.0, 0.25, 0.5)
    lines = draw(as_json(trace, now=102.0))
    assert lines[0] == "abc  POST /v1/audio/speech  200  2.000 s"
    preprocess, talker, waiting = lines[2:5]
    assert "0.000    1.000" in preprocess and preprocess.count("=") == 25
    assert "first 0.500" in talker and "x7" in talker and talker.endswith("cancelled")
    assert talker.index("|") - talker.index("=") == 12
    assert waiting.rstrip().endswith("=")
    assert lines[-1].startswith("4.00 s of speech, the first after 1.500 s, RTF 0.500, 0.250 s")
