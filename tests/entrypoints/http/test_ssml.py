"""SSML over the routes that read a whole text: what the talker is asked, and the pauses."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from sglang_omni.models.speech_text import ReadingOptions
from tests.entrypoints.http.fake import EVERYTHING, Served
from tests.entrypoints.http.speaking import SpeakingBackend, serving_speech
from tests.testing.family import RATE, split_fragments

SSML = "<speak>The <sub alias='World Wide Web Consortium'>W3C</sub> met there.</speak>"
SPOKEN = "The World Wide Web Consortium met there."


@pytest.fixture(scope="module")
def speaking() -> Iterator[Served]:
    with serving_speech() as served:
        yield served


@pytest.fixture
def backend(speaking: Served) -> SpeakingBackend:
    assert isinstance(speaking.backend, SpeakingBackend)
    speaking.backend.reset()
    return speaking.backend


def post(speaking: Served, path: str, **body: Any) -> httpx.Response:
    url = f"{speaking.url}/v1/audio/speech{path}"
    return httpx.post(url, json={"model": "org/ming", **body}, timeout=20)


def speak(speaking: Served, text: str, **fields: Any) -> bytes:
    reply = post(speaking, "", input=text, response_format="pcm", sample_rate=RATE, **fields)
    assert reply.status_code == 200, reply.text
    return reply.content


def asked(backend: SpeakingBackend) -> list[str]:
    return [request.text for request in backend.talker.requests]


@pytest.mark.parametrize("how", [{}, {"normalization": "none"}])
def test_the_talker_is_asked_for_the_words_of_the_document(
    speaking: Served, backend: SpeakingBackend, how: dict[str, Any]
) -> None:
    speak(speaking, SSML, **how)
    assert asked(backend) == [SPOKEN]


def test_the_rules_of_the_reference_get_the_words_themselves(
    speaking: Served, backend: SpeakingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "reading", ReadingOptions("reference"))
    speak(speaking, SSML)
    assert asked(backend) == [SPOKEN]


def test_a_batch_takes_ssml(speaking: Served, backend: SpeakingBackend) -> None:
    reply = post(speaking, "/batch", items=[{"input": SSML}, {"input": "<speak>a<b/></speak>"}])
    good, bad = reply.json()["results"]
    assert good["status"] == "success"
    assert asked(backend) == [SPOKEN]
    assert bad["error"]["param"] == "items.1.input"
    assert "<b> is not supported" in bad["error"]["message"]


def test_a_break_is_silence_of_its_length(speaking: Served, backend: SpeakingBackend) -> None:
    parts = split_fragments("One word.") + split_fragments("Another word.")
    audio = speak(speaking, "<speak>One word. <break time='1500ms'/>Another word.</speak>")
    assert asked(backend) == parts
    samples = np.frombuffer(audio, np.int16)
    silent = np.flatnonzero(samples == 0)
    runs = np.split(silent, np.flatnonzero(np.diff(silent) > 1) + 1)
    assert 1.5 <= max(map(len, runs)) / RATE < 1.6


def test_a_document_with_pauses_alone_has_nothing_to_speak(
    speaking: Served, backend: SpeakingBackend
) -> None:
    reply = post(speaking, "/batch", items=[{"input": "<speak><break time='100ms'/></speak>"}])
    (result,) = reply.json()["results"]
    assert "no words to speak" in result["error"]["message"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<speak>a\n<emphasis>b</emphasis></speak>", "line 2, column 1: <emphasis> is not"),
        ("<speak>a", "not well-formed XML"),
        ("<!-- c --><speak>a</speak>", None),
        ("<speak>Привет</speak>", "cannot read Привет"),
        ("<speak>a <sub alias='Привет'>b</sub></speak>", "cannot read Привет"),
        ("<speak>a <sub alias='hello'>Привет</sub></speak>", None),
    ],
)
def test_what_cannot_be_spoken_is_refused(
    speaking: Served, backend: SpeakingBackend, text: str, told: str | None
) -> None:
    backend.capabilities = EVERYTHING
    reply = post(speaking, "", input=text)
    if told is None:
        assert reply.status_code == 200, reply.text
        return
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "input")
    assert told in error["message"]
    assert not asked(backend)


def test_the_request_keeps_its_own_lexicon(speaking: Served, backend: SpeakingBackend) -> None:
    text = SSML.replace("met there", "met SQL")
    speak(speaking, text, lexicon={"SQL": "sequel"})
    assert asked(backend) == [SPOKEN.replace("met there", "met sequel")]
