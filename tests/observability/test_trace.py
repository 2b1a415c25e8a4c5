"""Stages of a request, and where their traces go."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from sglang_omni.observability import trace as traces
from sglang_omni.observability.playback_stats import PlaybackStats, measure_playback
from sglang_omni.observability.refusals import AUDIT_LOG
from sglang_omni.observability.timeline import draw_timeline, trace_to_dict
from sglang_omni.observability.trace import Span, Trace, current_trace, stage, use_trace
from sglang_omni.observability.trace_recorder import MAX_TRACES, TraceRecorder


async def words(count: int) -> AsyncGenerator[str, None]:
    with stage("words") as span:
        for _ in range(count):
            span.record_output()
            yield "word"


async def test_a_stage_has_its_times_and_outputs_in_whatever_task_it_runs() -> None:
    async def read() -> None:
        [word async for word in words(3)]

    with use_trace(Trace("1")) as trace:
        await asyncio.gather(read(), read())
    assert [(span.name, span.num_outputs, span.error) for span in trace.spans] == [
        ("words", 3, None)
    ] * 2
    for span in trace.spans:
        assert span.first_output_at is not None
        assert span.ended_at is not None
        assert span.started_at <= span.first_output_at <= span.ended_at
    assert current_trace() is None


async def test_a_stage_says_how_it_ended() -> None:
    with use_trace(Trace("1")) as trace:
        with pytest.raises(LookupError), stage("failing"):
            raise LookupError("the word of a user")
        async with aclosing(words(3)) as cut:
            await anext(cut)
    assert [span.error for span in trace.spans] == ["LookupError", "cancelled"]


async def test_a_stage_outside_a_request_is_nobodys() -> None:
    with stage("alone") as span:
        span.record_output()
    assert span.ended_at is not None


def test_a_very_long_request_does_not_grow_without_bound() -> None:
    with use_trace(Trace("1")) as trace:
        for _ in range(traces.MAX_SPANS + 3):
            with stage("talker"):
                pass
    assert (len(trace.spans), trace.num_dropped_spans) == (traces.MAX_SPANS, 3)


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
    assert measure_playback(audio, started_at=0.0, sample_rate=10) == expected


def test_an_observer_keeps_the_latest_and_forgets_their_pieces() -> None:
    seen: list[Trace] = []
    observer = TraceRecorder(lambda: 10, [seen.append])
    for number in range(MAX_TRACES + 5):
        trace = observer.begin(str(number))
        trace.record_audio(5)
        observer.end(trace, "POST /v1/audio/speech")
    assert observer.find("4", lambda _: True) is None
    kept = observer.find("5", lambda _: True)
    assert kept is not None
    assert kept.audio_chunks == []
    assert kept.playback is not None
    assert kept.playback.audio_s == 0.5
    assert len(seen) == MAX_TRACES + 5


def test_of_requests_with_the_same_given_id_the_latest_visible_one_is_found() -> None:
    observer = TraceRecorder()
    for number, owner in enumerate(("me", "you", "me", "you")):
        observer.begin(str(number), "mine").owner = owner
    found = observer.find("mine", lambda trace: trace.owner == "me")
    assert found is not None
    assert found.id == "2"
    assert observer.find("mine", lambda trace: trace.owner == "nobody") is None
    assert observer.find("1", lambda trace: trace.owner == "me") is None


@pytest.mark.parametrize(("given", "shown"), [("mine", "mine"), (None, "0")])
def test_a_refusal_is_logged_under_the_id_that_the_caller_saw(
    given: str | None, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    observer = TraceRecorder()
    trace = observer.begin("0", given)
    trace.refusal = (401, "wrong_key")
    with caplog.at_level(logging.INFO, AUDIT_LOG.name):
        observer.end(trace, "GET /v1/models")
    lines = [record.message for record in caplog.records if record.name == AUDIT_LOG.name]
    assert [json.loads(line)["request_id"] for line in lines] == [shown]


def test_a_timeline_is_drawn_to_scale() -> None:
    trace = Trace(
        "abc", started_at=100.0, route="POST /v1/audio/speech", status=200, ended_at=102.0
    )
    trace.spans = [
        Span("preprocess", 100.0, ended_at=101.0),
        Span("talker", 101.0, 101.5, 102.0, num_outputs=7, error="cancelled"),
        Span("waiting", 101.0),
        Span("decode", 100.0, ended_at=102.0),
    ]
    trace.playback = PlaybackStats(1.5, 4.0, 0.25, 0.5)
    lines = draw_timeline(trace_to_dict(trace, now=102.0))
    assert lines[0] == "abc  POST /v1/audio/speech  200  2.000 s"
    axis, preprocess, talker, waiting = lines[2:6]
    assert axis.index("0", 40) == preprocess.index("=")
    assert axis.endswith("2.000 s")
    assert len(axis) == len(waiting)
    assert "0.000    1.000" in preprocess
    assert preprocess.count("=") == 25
    assert "first 0.500" in talker
    assert "x7" in talker
    assert talker.endswith("cancelled")
    assert talker.index("|") - talker.index("=") == 12
    assert waiting.rstrip().endswith("=")
    # Two stages took as long; the first of them is named. What runs beside others is not.
    assert "longest: preprocess, 1.000 of 2.000 s" in lines
    assert "decode runs beside thinker: it makes text of the tokens" in lines
    assert lines[-1].startswith("4.00 s of speech, the first after 1.500 s, RTF 0.500, 0.250 s")
