"""The real pipeline behind the API, with a thinker and a talker that play scripts."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from websockets.sync.client import connect

from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.pipeline.segment import SegmentSettings
from tests.entrypoints.http.fake import FakeBackend, Served, serving
from tests.pipeline.engines import (
    SPEECH,
    TEXT_ONLY,
    ScriptedEngine,
    admit_all,
    script_answer,
    script_hum,
)
from tests.testing.family import CHAT, SPEECH_TEXT, TOKENS


class SpeakingBackend(FakeBackend):
    """The pipeline over scripted engines; the thinker repeats the question."""

    def reset(self) -> None:
        super().reset()
        self.talker = ScriptedEngine(script_hum())

    def _pipeline(self, answer: list[str]) -> Pipeline:
        thinker = ScriptedEngine(script_answer(TOKENS, answer))
        return Pipeline(
            TEXT_ONLY, admit_all(thinker, self.talker), CHAT, 512, SegmentSettings(), **SPEECH
        )

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        (part,) = request.messages[-1].content
        return self._pipeline([*part.text]).respond(request)  # type: ignore[union-attr]

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        return self._pipeline([]).speak(request)

    def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        return self._pipeline([]).stream_speech(request, text)


@contextmanager
def serving_speech() -> Iterator[Served]:
    SPEECH_TEXT.warm_up()
    with serving(backend=SpeakingBackend()) as served:
        yield served


def read_aloud(url: str, text: str) -> None:
    body = {"model": "org/ming", "input": text, "response_format": "pcm"}
    reply = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=20)
    assert reply.status_code == 200, reply.text


def chat(url: str, text: str) -> None:
    body: dict[str, Any] = {"model": "org/ming", "messages": [{"role": "user", "content": text}]}
    body |= {"modalities": ["text", "audio"], "audio": {"voice": "prompt", "format": "wav"}}
    reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=20)
    assert reply.status_code == 200, reply.text
    assert reply.json()["choices"][0]["message"]["audio"]["transcript"] == text


def stream_speech(url: str, text: str) -> None:
    with connect(f"{url.replace('http', 'ws')}/v1/audio/speech/stream") as socket:
        for event in (
            {"type": "session.config"},
            *({"type": "input.text", "text": piece} for piece in text),
            {"type": "input.done"},
        ):
            socket.send(json.dumps(event))
        while not isinstance(frame := socket.recv(timeout=10), str) or "session.done" not in frame:
            assert "error" not in str(frame)


ROUTES = {"speech": read_aloud, "chat": chat, "stream": stream_speech}


def speak_over(route: str, served: Served, text: str) -> list[str]:
    """Have a text spoken over one route; return what the talker was asked, piece by piece."""
    backend = served.backend
    assert isinstance(backend, SpeakingBackend)
    backend.reset()
    ROUTES[route](served.url, text)
    return [request.text for request in backend.talker.requests]
