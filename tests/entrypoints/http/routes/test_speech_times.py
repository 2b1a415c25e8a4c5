"""`/v1/audio/speech` tells when segments and words are spoken, in events and in JSON."""

import base64
import io
import json
from itertools import pairwise
from typing import Any

import httpx
import openai
import pytest
import soundfile

from sglang_omni.media.tempo import convert_time
from sglang_omni.pipeline.request import AudioDelta, Finished, TimedSegment, TimedWord, Usage
from tests.entrypoints.http.fake import EVERYTHING, FakeBackend, hanging, playing, tone
from tests.testing.family import RATE

BODY: dict[str, Any] = {"model": "org/ming", "input": "One two. Three."}
FIRST = TimedSegment(
    "One two.", 0.0, 0.32, (TimedWord("One", 0.01, 0.1), TimedWord("two", 0.1, 0.3)), "river", 0
)
SECOND = TimedSegment("Three.", 0.32, 0.64, (TimedWord("Three", 0.4, 0.6),), "river", 0)
SPEECH = (AudioDelta(tone()), FIRST, AudioDelta(tone()), SECOND, Finished("stop", Usage()))
SEGMENTS = [
    {"id": 0, "text": "One two.", "start": 0.0, "end": 0.32, "voice": "river", "turn": 0},
    {"id": 1, "text": "Three.", "start": 0.32, "end": 0.64, "voice": "river", "turn": 0},
]
WORDS = [
    {"word": "One", "start": 0.01, "end": 0.1},
    {"word": "two", "start": 0.1, "end": 0.3},
    {"word": "Three", "start": 0.4, "end": 0.6},
]


@pytest.fixture(autouse=True)
def timed(backend: FakeBackend) -> None:
    backend.script = playing(*SPEECH)


def post(http: httpx.Client, **fields: Any) -> httpx.Response:
    reply = http.post("/v1/audio/speech", json={**BODY, **fields})
    assert reply.status_code == 200, reply.text
    return reply


def events_of(reply: httpx.Response) -> list[dict[str, Any]]:
    lines = reply.text.removesuffix("\n\n").split("\n\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_an_event_follows_the_audio_of_its_segment(
    http: httpx.Client, backend: FakeBackend
) -> None:
    reply = post(http, stream_format="sse", timestamps="word", response_format="pcm")
    events = events_of(reply)
    kinds = ["speech.audio.delta", "speech.audio.timestamps"]
    # The resampler holds some samples back, which come at the end.
    assert [e["type"] for e in events] == [*kinds, *kinds, kinds[0], "speech.audio.done"]
    assert events[1] == {"type": kinds[1], "segments": SEGMENTS[:1], "words": WORDS[:2]}
    assert events[3] == {"type": kinds[1], "segments": SEGMENTS[1:], "words": WORDS[2:]}
    assert backend.requests[0].timestamps == "word"


def test_an_event_is_sent_while_synthesis_goes_on(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = hanging(AudioDelta(tone()), FIRST)
    asked = {**BODY, "stream_format": "sse", "timestamps": "segment"}
    with http.stream("POST", "/v1/audio/speech", json=asked) as reply:
        lines = reply.iter_lines()  # dropping it would close the connection
        assert any("speech.audio.timestamps" in line for line in lines)
        assert backend.running == 1
    backend.wait_running(0)


def test_events_without_timestamps_stay_as_they_were(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(AudioDelta(tone()), Finished("stop", Usage()))
    kinds = {event["type"] for event in events_of(post(http, stream_format="sse"))}
    assert kinds == {"speech.audio.delta", "speech.audio.done"}
    assert backend.requests[0].timestamps == "none"


def test_a_verbose_answer_has_the_file_and_the_times(
    http: httpx.Client, backend: FakeBackend
) -> None:
    answer = post(http, verbose=True).json()
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(answer.pop("audio"))))
    assert (len(samples), rate) == (2 * len(tone()), RATE)
    assert answer.pop("usage")["output_tokens"] == 0
    assert answer == {
        "media_type": "audio/wav",
        "sample_rate": RATE,
        "format": "wav",
        "duration": 0.64,
        "segments": SEGMENTS,
        "words": WORDS,
    }
    assert backend.requests[0].timestamps == "word"


def test_times_are_those_of_the_audio_that_is_sent(http: httpx.Client) -> None:
    answer = post(http, verbose=True, speed=0.5, response_format="flac", sample_rate=16_000).json()
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(answer["audio"])))
    assert rate == 16_000
    assert answer["duration"] == pytest.approx(len(samples) / rate, abs=0.001)
    word = answer["words"][2]
    expected = [convert_time(seconds, RATE, 0.5) for seconds in (0.32, 0.4, 0.6)]
    told = [answer["segments"][1]["start"], word["start"], word["end"]]
    assert told == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("fields", "granularity"),
    [
        ({"timestamps": "segment"}, "segment"),
        ({"timestamps": "none"}, "none"),
        ({"timestamps": None}, "word"),
        ({"timestamp_granularities": ["segment", "word"]}, "word"),
        ({"timestamp_granularities": ["segment"]}, "segment"),
        ({"timestamp_granularities": []}, "word"),
    ],
    ids=["segment", "none", "null", "both", "segments", "empty"],
)
def test_the_granularity_is_as_asked(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, Any], granularity: str
) -> None:
    post(http, verbose=True, **fields)
    assert backend.requests[0].timestamps == granularity


def test_the_name_of_transcriptions_asks_for_json(client: openai.OpenAI) -> None:
    reply = client.audio.speech.create(
        model="org/ming",
        voice="river",
        input="One two. Three.",
        response_format="verbose_json",  # type: ignore[arg-type]
        extra_body={"timestamp_granularities": ["word"]},
    )
    assert json.loads(reply.content)["words"] == WORDS


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"timestamps": "word"}, "timestamps"),
        ({"timestamps": "word", "stream": False}, "timestamps"),
        ({"timestamps": "letter", "verbose": True}, "timestamps"),
        ({"timestamps": True, "verbose": True}, "timestamps"),
        ({"timestamp_granularities": ["letter"]}, "timestamp_granularities"),
        ({"timestamp_granularities": {"a": 1}}, "timestamp_granularities"),
        ({"verbose": "yes"}, "verbose"),
        ({"verbose": True, "stream_format": "sse"}, "verbose"),
        ({"stream": False, "stream_format": "sse"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"timestamps": "word", "verbose": True, "task": "sound"}, "timestamps"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, Any], param: str
) -> None:
    backend.capabilities = EVERYTHING
    reply = http.post("/v1/audio/speech", json={**BODY, **fields})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
    assert not backend.requests


def test_a_sound_has_a_verbose_answer_without_words(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.capabilities = EVERYTHING
    backend.script = playing(AudioDelta(tone()), Finished("stop", Usage()))
    answer = post(http, verbose=True, task="sound").json()
    assert (answer["duration"], answer["segments"], answer["words"]) == (0.32, [], [])


def test_items_of_a_batch_have_times(http: httpx.Client) -> None:
    items = [{"input": "One two. Three.", "timestamps": "word"}, {"input": "One two. Three."}]
    body = {"model": "org/ming", "items": items}
    timed, plain = http.post("/v1/audio/speech/batch", json=body).json()["results"]
    assert (timed["duration"], timed["segments"], timed["words"]) == (0.64, SEGMENTS, WORDS)
    assert not {"duration", "segments", "words"} & plain.keys()


def test_times_do_not_overlap(http: httpx.Client) -> None:
    words = post(http, verbose=True, speed=1.7).json()["words"]
    assert all(first["end"] <= second["start"] for first, second in pairwise(words))
