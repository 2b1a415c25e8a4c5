"""Words that the model does not speak: every stream tells which ones its audio leaves out."""

import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import openai
import pytest
from websockets.sync.client import connect

from sglang_omni.entrypoints.http.routes import speech_stream
from sglang_omni.entrypoints.notices import build_notice
from sglang_omni.pipeline.request import ChatRequest, Event, UnspokenText
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.pipeline.segment import SegmentSettings
from tests.entrypoints.http.fake import Served, serving
from tests.entrypoints.http.speaking import SpeakingBackend
from tests.pipeline.engines import SPEECH, TEXT_ONLY, ScriptedEngine, admit_all, script_answer
from tests.testing.family import CHAT, SPEECH_TEXT, TOKENS

ANSWER = "The word Привет means hello. "
NOTICE = {
    "code": "unspoken_text",
    "message": "the model does not speak these words; the audio leaves them out: Привет",
    "words": ["Привет"],
}


class BilingualBackend(SpeakingBackend):
    """A pipeline that speaks English and Chinese."""

    def _pipeline(self, answer: list[str]) -> Pipeline:
        return Pipeline(
            TEXT_ONLY,
            admit_all(ScriptedEngine(script_answer(TOKENS, answer)), self.talker),
            CHAT,
            512,
            SegmentSettings(),
            **SPEECH,
            speech_languages=("zh", "en"),
        )

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        return self._pipeline([ANSWER]).respond(request)


@pytest.fixture(scope="module")
def running() -> Iterator[Served]:
    SPEECH_TEXT.warm_up()
    with serving(backend=BilingualBackend()) as served:
        yield served


@pytest.fixture
def backend(running: Served) -> BilingualBackend:
    assert isinstance(running.backend, BilingualBackend)
    running.backend.reset()
    return running.backend


@pytest.fixture
def client(running: Served, backend: BilingualBackend) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def chat(client: openai.OpenAI, **fields: Any) -> Any:
    messages: Any = [{"role": "user", "content": "What does it mean?"}]
    return client.chat.completions.create(model="org/ming", messages=messages, **fields)


def speech(audio_format: str) -> dict[str, Any]:
    return {"modalities": ["text", "audio"], "audio": {"voice": "prompt", "format": audio_format}}


def test_a_message_quotes_a_few_words_and_the_list_has_all() -> None:
    notice = build_notice(UnspokenText(("ф" * 30, "да", "нет", "мир")))
    assert notice["message"].endswith(f": {'ф' * 20}, да, нет, ...")
    assert notice["words"] == ["ф" * 30, "да", "нет", "мир"]


def test_a_complete_answer_has_notices(client: openai.OpenAI, backend: BilingualBackend) -> None:
    answer = chat(client, **speech("wav")).to_dict()
    assert answer["notices"] == [{**NOTICE, "choice_index": 0}]
    message = answer["choices"][0]["message"]
    assert message["content"].strip() == message["audio"]["transcript"].strip() == ANSWER.strip()
    assert "Привет" not in " ".join(request.text for request in backend.talker.requests)


def test_each_choice_has_its_own_notices(client: openai.OpenAI) -> None:
    answer = chat(client, n=2, **speech("wav")).to_dict()
    assert [notice["choice_index"] for notice in answer["notices"]] == [0, 1]


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_in_text_has_none(client: openai.OpenAI, stream: bool) -> None:
    answers = chat(client, stream=stream)
    for answer in answers if stream else [answers]:
        assert "notices" not in answer.to_dict()


def test_a_chunk_has_the_notice_before_the_audio_that_it_concerns(client: openai.OpenAI) -> None:
    chunks = [chunk.to_dict() for chunk in chat(client, stream=True, **speech("pcm16"))]
    (at,) = [number for number, chunk in enumerate(chunks) if "notices" in chunk]
    assert chunks[at]["notices"] == [{**NOTICE, "choice_index": 0}]
    assert chunks[at]["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]
    audio = [chunk["choices"][0]["delta"].get("audio", {}) for chunk in chunks]
    assert any("transcript" in one for one in audio[:at])
    assert not any("data" in one for one in audio[:at])
    assert any("data" in one for one in audio[at:])


def test_a_text_that_is_spoken_while_it_is_written_has_them(
    running: Served, backend: BilingualBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The route refuses a whole word; one that arrives letter by letter may pass.
    monkeypatch.setattr(speech_stream, "check_speakable", lambda *_: None)
    events: list[dict[str, Any]] = []
    with connect(f"{running.url.replace('http', 'ws')}/v1/audio/speech/stream") as socket:
        for event in (
            {"type": "session.config"},
            {"type": "input.text", "text": ANSWER},
            {"type": "input.done"},
        ):
            socket.send(json.dumps(event))
        while not events or events[-1]["type"] != "session.done":
            frame = socket.recv(timeout=10)
            events += [json.loads(frame)] if isinstance(frame, str) else [{"type": "audio"}]
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["audio.start", "notice", "audio"]
    assert events[1] == {"type": "notice", "index": 0, **NOTICE}
