"""What the talker is asked to say, over every route that speaks.

Behind the API is the real pipeline, with a thinker and a talker that play scripts.
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.text.front import warm_up
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest, TextPart
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.pipeline.segment import SegmentSettings
from tests.entrypoints.http.fake import FakeBackend, Served, serving
from tests.pipeline.engines import (
    CHAT,
    SPEECH,
    TEXT_ONLY,
    ScriptedEngine,
    admit_all,
    script_answer,
    script_hum,
)
from tests.testing.golden import TINY


class SpeakingBackend(FakeBackend):
    """The pipeline over scripted engines; the thinker repeats the question."""

    tokenizer = ThinkerTokenizer(TINY)

    def reset(self) -> None:
        super().reset()
        self.talker = ScriptedEngine(script_hum())

    def _pipeline(self, answer: list[str]) -> Pipeline:
        thinker = ScriptedEngine(script_answer(self.tokenizer, answer))
        return Pipeline(
            TEXT_ONLY, admit_all(thinker, self.talker), CHAT, 512, SegmentSettings(), **SPEECH
        )

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        (part,) = request.messages[-1].content
        assert isinstance(part, TextPart)
        return self._pipeline([*part.text]).respond(request)

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        return self._pipeline([]).speak(request)

    def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        return self._pipeline([]).stream_speech(request, text)


@pytest.fixture(scope="module")
def speaking() -> Iterator[Served]:
    warm_up()
    with serving(backend=SpeakingBackend()) as served:
        yield served


@pytest.fixture
def server(speaking: Served) -> Served:
    speaking.backend.reset()
    return speaking


def spoken_pieces(server: Served) -> list[str]:
    """What the talker was asked, piece by piece."""
    assert isinstance(server.backend, SpeakingBackend)
    return [request.text for request in server.backend.talker.requests]


def read_aloud(url: str, text: str) -> None:
    body = {"model": "org/ming", "input": text, "response_format": "pcm"}
    reply = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=20)
    assert reply.status_code == 200, reply.text


def chat(url: str, text: str) -> None:
    body: dict[str, Any] = {
        "model": "org/ming",
        "messages": [{"role": "user", "content": text}],
    }
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


@pytest.fixture(params=ROUTES)
def say(request: pytest.FixtureRequest, server: Served) -> Callable[[str], str]:
    """Has a text spoken over one route; what the talker was asked, piece by piece."""

    def spoken(text: str) -> str:
        ROUTES[request.param](server.url, text)
        return "|".join(spoken_pieces(server))

    return spoken


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("您好，您这次登录用的验证码是下面这一串数字。839201。请不要告诉别人。", "八十三万九千"),
        ("现在请您记下这一次登录的验证码，谢谢您的配合。839201", "八十三万九千"),
        ("今天上海白天的最高气温比昨天要高不少哦，达到。25°C。", "二十五摄氏度"),
        ("这一件衣服的价格现在已经比昨天便宜多了哦！HK$20。", "二十港元"),
        ("我最近在看的那一款新手机的名字大概叫做。iPhone 15 Pro，", "十五"),
        ("Your new code for the log-in of today is this one. 839201.", "eight hundred thirty-nine"),
        ("他说了下面这一句英文，请跟着我读一遍。There are 12 apples in the box.", "twelve"),
    ],
)
def test_numbers_are_read_in_the_language_around_them(
    say: Callable[[str], str], text: str, number: str
) -> None:
    pieces = say(text)
    assert number in pieces
    assert "|" in pieces, "in one piece with words the number proves nothing"


def test_a_number_before_the_first_word_is_read_in_its_language(server: Served) -> None:
    read_aloud(server.url, "839201。12345678。这就是您这次登录用的验证码。")
    asked = spoken_pieces(server)
    assert asked[0].startswith("八十三万")


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("访问https://example.com/a?b=1有货的店。", "访问有货的店。"),
        ("见https://a.cn/b。然后回来吧。", "见。然后回来吧。"),
        ("见“https://a.cn/b”再回来吧。", "见“”再回来吧。"),
        ("一共有１２３个ＡＢＣ吗？是：对！", "一共有一百二十三个ABC吗?是：对!"),
        ("涨了９９．５％，现在是￥５０。", "涨了百分之九十九点五，现在是五十元。"),
        (
            "I have １２３ ＡＢＣ for ￥５０.",
            "I have one hundred twenty-three ABC for fifty yuan .",
        ),
        ("价格是HK$20，或者NT$3万。", "价格是二十港元，或者三万新台币。"),
        ("It costs HK$20 now.", "It costs twenty Hong Kong dollars now."),
        ("a", "ay."),
        ("B.", "bee."),
        ("hi", "hi."),
    ],
)
def test_what_is_asked_of_the_talker(say: Callable[[str], str], text: str, spoken: str) -> None:
    assert say(text).replace("|", "") == spoken
