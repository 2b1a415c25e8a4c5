"""Times of what the real pipeline speaks, over every route of speech."""

import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect

from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest
from tests.entrypoints.http.fake import Served
from tests.entrypoints.http.speaking import SpeakingBackend, serving_speech
from tests.pipeline.engines import ScriptedEngine
from tests.testing.family import RATE
from tests.testing.needs import needs_rules

LETTER_S, GAP_S = 0.06, 0.2
TEXT = "It cost $5, or 5 kg. See you!"
SSML = "<speak>The <sub alias='World Wide Web Consortium'>W3C</sub> met there.</speak>"


async def say_words(request: TalkerRequest) -> AsyncGenerator[TalkerChunk, None]:
    """A talker's script: sound as long as each word, and silence after it."""
    words = request.text.split()
    for index, word in enumerate(words):
        sound = np.random.default_rng(1).normal(0, 0.1, round(LETTER_S * len(word) * RATE))
        pcm = np.concatenate((sound, np.zeros(round(GAP_S * RATE)))).astype(np.float32)
        yield TalkerChunk(pcm, patches=1, last=index == len(words) - 1)


@pytest.fixture(scope="module")
def speaking() -> Iterator[Served]:
    with serving_speech() as served:
        yield served


@pytest.fixture
def backend(speaking: Served) -> SpeakingBackend:
    assert isinstance(speaking.backend, SpeakingBackend)
    speaking.backend.reset()
    speaking.backend.talker = ScriptedEngine(say_words)
    return speaking.backend


def post(speaking: Served, path: str = "", **body: Any) -> Any:
    url = f"{speaking.url}/v1/audio/speech{path}"
    reply = httpx.post(url, json={"model": "org/ming", **body}, timeout=20)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.usefixtures("backend")
def test_words_are_written_as_in_the_text(speaking: Served) -> None:
    answer = post(speaking, input=TEXT, verbose=True)
    assert " ".join(segment["text"] for segment in answer["segments"]) == TEXT
    assert [word["word"] for word in answer["words"]][-2:] == ["See", "you"]
    ends = [word["end"] for word in answer["words"]]
    assert ends == sorted(ends)
    assert ends[-1] == pytest.approx(answer["duration"] - GAP_S, abs=0.02)


@needs_rules
@pytest.mark.usefixtures("backend")
def test_ssml_is_told_as_it_was_written(speaking: Served) -> None:
    answer = post(speaking, input=SSML, verbose=True)
    assert answer["segments"][0]["text"] == "The W3C met there."
    words = {word["word"]: word for word in answer["words"]}
    assert list(words) == ["The", "W3C", "met", "there"]
    seconds = {name: word["end"] - word["start"] for name, word in words.items()}
    assert max(seconds, key=lambda name: seconds[name]) == "W3C"


@pytest.mark.usefixtures("backend")
def test_speakers_are_named_with_their_turn(speaking: Served) -> None:
    turns = [{"text": "Who is there?", "voice": "river"}, {"text": "A friend."}]
    segments = post(speaking, input=turns, verbose=True)["segments"]
    assert [(one["voice"], one["turn"]) for one in segments] == [("river", 0), ("prompt", 1)]
    assert segments[1]["start"] > segments[0]["end"]


def test_the_route_for_texts_that_are_written_tells_times(
    speaking: Served, backend: SpeakingBackend
) -> None:
    assert backend.talker.open == 0
    with connect(f"{speaking.url.replace('http', 'ws')}/v1/audio/speech/stream") as socket:
        for event in (
            {"type": "session.config", "timestamps": "word", "speed": 2.0},
            *({"type": "input.text", "text": piece} for piece in ("The river ", "runs slowly.")),
            {"type": "input.done"},
        ):
            socket.send(json.dumps(event))
        events: list[dict[str, Any]] = []
        num_bytes = 0
        while not events or events[-1]["type"] != "session.done":
            frame = socket.recv(timeout=10)
            if isinstance(frame, bytes):
                num_bytes += len(frame)
            else:
                events.append(json.loads(frame))
    times = [event for event in events if event["type"] == "audio.timestamps"]
    words = [word["word"] for event in times for word in event["words"]]
    assert words == ["The", "river", "runs", "slowly"]
    assert times[-1]["segments"][0]["end"] == pytest.approx(num_bytes / 2 / 24_000, abs=0.05)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("text", [" ", "...", "<speak> </speak>"], ids=["blank", "marks", "ssml"])
def test_an_item_without_words_fails_alone(speaking: Served, text: str) -> None:
    items = [{"input": "Good."}, {"input": text}, {"input": "Better."}]
    answer = post(speaking, "/batch", items=items)
    assert [result["status"] for result in answer["results"]] == ["success", "error", "success"]
    error = answer["results"][1]["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == "items.1.input"
