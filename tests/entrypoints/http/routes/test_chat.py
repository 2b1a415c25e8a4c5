"""Non-streamed chat, through the official client and as JSON."""

import base64
import io
import time
from typing import Any

import httpx
import openai
import pytest
import soundfile

from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    Message,
    TextDelta,
    TextPart,
    Usage,
    Voice,
)
from sglang_omni.protocol.sampling import SamplingParams
from tests.entrypoints.http.fake import USAGE, FakeBackend, playing, tone
from tests.testing.family import RATE

HELLO: list[Any] = [{"role": "user", "content": "hello big world"}]
SPOKEN: list[Any] = ["text", "audio"]


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(**{"model": "org/ming", "messages": HELLO, **fields})


def test_a_text_answer(client: openai.OpenAI, backend: FakeBackend) -> None:
    answer = ask(client)
    choice = answer.choices[0]
    assert answer.object == "chat.completion"
    assert answer.model == "org/ming"
    assert choice.message.role == "assistant"
    assert choice.message.content == "hello big world "
    assert choice.message.audio is None
    assert choice.finish_reason == "stop"
    assert backend.requests[0].voice is None


def test_the_pipeline_gets_the_defaults_when_nothing_is_set(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    ask(client)
    (request,) = backend.requests
    assert request.sampling == SamplingParams()
    assert not request.thinking
    assert request.messages == (Message("user", (TextPart("hello big world"),)),)


def test_every_field_reaches_the_pipeline(client: openai.OpenAI, backend: FakeBackend) -> None:
    ask(
        client,
        messages=[
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": t} for t in ("a", "b")]},
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": "d"},
        ],
        modalities=SPOKEN,
        audio={"voice": "river", "format": "wav"},
        temperature=0.5,
        top_p=0.9,
        max_completion_tokens=33,
        stop=["x", "y"],
        seed=5,
        n=1,
        frequency_penalty=0.5,
        presence_penalty=-0.5,
        logit_bias={"7": -100},
        logprobs=True,
        top_logprobs=2,
        user="someone",
        extra_body={
            "top_k": 20,
            "min_p": 0.1,
            "repetition_penalty": 1.05,
            "chat_template_kwargs": {"enable_thinking": True},
        },
    )
    (request,) = backend.requests
    assert [(m.role, [p.text for p in m.content]) for m in request.messages] == [
        ("system", ["be brief"]),
        ("user", ["a", "b"]),
        ("assistant", ["c"]),
        ("user", ["d"]),
    ]
    assert request.sampling == SamplingParams(
        max_tokens=33,
        temperature=0.5,
        top_p=0.9,
        top_k=20,
        min_p=0.1,
        repetition_penalty=1.05,
        frequency_penalty=0.5,
        presence_penalty=-0.5,
        logit_bias=((7, -100.0),),
        stop=("x", "y"),
        seed=5,
        top_logprobs=2,
    )
    assert request.voice == Voice("river", 5)
    assert request.thinking


def test_null_fields_count_as_absent(http: httpx.Client, backend: FakeBackend) -> None:
    fields = ("temperature", "seed", "stop", "audio", "modalities", "stream_options", "n")
    nothing = dict.fromkeys(fields)
    body = {"model": "org/ming", "messages": HELLO, **nothing}
    assert http.post("/v1/chat/completions", json=body).status_code == 200
    assert backend.requests[0].sampling == SamplingParams()


def test_one_stop_string_and_equal_token_limits_are_taken(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    ask(client, stop="END", max_tokens=9, max_completion_tokens=9)
    assert backend.requests[0].sampling == SamplingParams(max_tokens=9, stop=("END",))


def test_text_and_speech_in_one_answer(client: openai.OpenAI) -> None:
    before = int(time.time())
    message = ask(client, modalities=SPOKEN).choices[0].message
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(message.audio.data)))
    assert (rate, len(samples)) == (RATE, 3 * len(tone()))
    assert message.content == message.audio.transcript == "hello big world "
    assert message.audio.id.startswith("audio-")
    assert before + 3600 <= message.audio.expires_at <= time.time() + 3600


def test_speech_alone_has_no_content(client: openai.OpenAI) -> None:
    message = ask(client, modalities=["audio"]).choices[0].message
    assert message.content is None
    assert message.audio.transcript == "hello big world "


@pytest.mark.parametrize(
    ("audio", "rate"), [({}, 24_000), ({"sample_rate": 16_000}, 16_000)], ids=["usual", "asked"]
)
def test_pcm16_has_the_usual_rate_or_the_one_asked_for(
    client: openai.OpenAI, audio: dict[str, Any], rate: int
) -> None:
    asked: Any = {"voice": "river", "format": "pcm16", **audio}
    raw = client.chat.completions.with_raw_response.create(
        model="org/ming", messages=HELLO, modalities=SPOKEN, audio=asked
    )
    spoken = raw.parse().choices[0].message.audio
    assert spoken is not None
    data = base64.b64decode(spoken.data)
    assert len(data) == 2 * round(3 * len(tone()) * rate / RATE)
    assert raw.headers["x-sample-rate"] == str(rate)


@pytest.mark.parametrize("voice", ["river", {"id": "river"}])
def test_a_voice_is_a_name_or_an_object(
    http: httpx.Client, backend: FakeBackend, voice: Any
) -> None:
    body = {"model": "org/ming", "messages": HELLO, "modalities": SPOKEN, "audio": {"voice": voice}}
    assert http.post("/v1/chat/completions", json=body).status_code == 200
    assert backend.requests[0].voice.name == "river"


def test_without_a_seed_every_answer_has_its_own_noise(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    answers = [ask(client, modalities=SPOKEN) for _ in range(2)]
    assert all(not hasattr(answer, "seed_applies_to") for answer in answers)
    assert len({request.voice.seed for request in backend.requests}) == 2
    assert {request.sampling.seed for request in backend.requests} == {None}


@pytest.mark.parametrize(
    ("deterministic", "temperature", "modalities", "expected"),
    [
        (False, 0.7, SPOKEN, ["audio"]),
        (False, 0.7, ["text"], []),
        (False, 0.0, SPOKEN, ["text", "audio"]),
        (True, 0.7, SPOKEN, ["text", "audio"]),
        (True, 0.7, ["text"], ["text"]),
    ],
)
def test_the_answer_says_what_a_seed_fixes(
    client: openai.OpenAI,
    backend: FakeBackend,
    deterministic: bool,
    temperature: float,
    modalities: list[str],
    expected: list[str],
) -> None:
    backend.deterministic_text = deterministic
    answer = ask(client, seed=3, temperature=temperature, modalities=modalities)
    assert answer.seed_applies_to == expected


def test_usage_counts_audio_tokens_into_the_completion(client: openai.OpenAI) -> None:
    usage = ask(client, modalities=SPOKEN).usage
    assert usage.prompt_tokens == USAGE.prompt_tokens
    assert usage.completion_tokens == USAGE.completion_tokens + USAGE.audio_tokens
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens_details.cached_tokens == USAGE.cached_tokens
    assert usage.completion_tokens_details.audio_tokens == USAGE.audio_tokens


def test_the_finish_reason_is_the_pipelines(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = playing(TextDelta("a"), Finished("length", Usage()))
    assert ask(client, max_tokens=1).choices[0].finish_reason == "length"


def test_a_spoken_answer_can_be_sent_back_as_it_came(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    spoken = ask(client, modalities=["audio"]).choices[0].message
    ask(client, messages=[*HELLO, spoken, {"role": "user", "content": "and then?"}])
    turn = backend.requests[-1].messages[1]
    assert turn == Message("assistant", (TextPart("hello big world "),))


def test_a_text_answer_never_carries_audio(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = playing(TextDelta("a"), AudioDelta(tone()), Finished("stop", Usage()))
    assert ask(client).choices[0].message.to_dict() == {"role": "assistant", "content": "a"}


async def test_the_asynchronous_client_gets_the_same_answer(client: openai.OpenAI) -> None:
    async with openai.AsyncOpenAI(base_url=client.base_url, api_key="none") as other:
        answer = await other.chat.completions.create(model="org/ming", messages=HELLO)
    assert answer.choices[0].message.content == "hello big world "
