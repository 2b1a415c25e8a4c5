"""Chats that are answered with an image: alone, after text and speech, whole and streamed."""

import base64
import io
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from PIL import Image

from sglang_omni.config.image_options import ImageOptions
from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest, ImageStep
from sglang_omni.pipeline.request import ChatRequest, Finished, MediaPart, Started, ToolCalled
from sglang_omni.protocol.errors import InvalidRequest, Overloaded
from sglang_omni.protocol.tools import ToolCall
from tests.entrypoints.http.fake import USAGE, FakeBackend, playing
from tests.testing.family import CAPABILITIES

HELLO: list[Any] = [{"role": "user", "content": "a red mill"}]
BOTH: list[Any] = ["text", "image"]
PNG = "data:image/png;base64,iVBORw0KGgo="
TOOL = {"type": "function", "function": {"name": "look"}}


@pytest.fixture(autouse=True)
def drawing(backend: FakeBackend) -> None:
    backend.capabilities = replace(CAPABILITIES, image_output=True)


def ask(client: openai.OpenAI, modalities: list[Any], **image: Any) -> Any:
    extra = {"image": image} if image else {}
    return client.chat.completions.create(
        model="org/ming", messages=HELLO, modalities=modalities, extra_body=extra
    )


def drawn(backend: FakeBackend) -> list[ImageRequest]:
    return [request for request in backend.requests if isinstance(request, ImageRequest)]


def read(url: str) -> Image.Image:
    head, _, data = url.partition(";base64,")
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert head == f"data:image/{str(image.format).lower()}"
    return image


def colour_of(image: dict[str, Any]) -> int:
    return int(np.asarray(read(image["image_url"]["url"]).convert("RGB")).mean())


def post(http: httpx.Client, status: int = 400, **fields: Any) -> dict[str, Any]:
    body = {"messages": HELLO, "modalities": BOTH, **fields}
    reply = http.post("/v1/chat/completions", json=body)
    assert reply.status_code == status, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def stream(http: httpx.Client, **fields: Any) -> list[dict[str, Any]]:
    body = {"messages": HELLO, "modalities": BOTH, "stream": True, **fields}
    reply = http.post("/v1/chat/completions", json=body)
    lines = [line.removeprefix("data: ") for line in reply.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]", reply.text
    return [json.loads(line) for line in lines[:-1]]


def test_an_image_follows_the_text(client: openai.OpenAI, backend: FakeBackend) -> None:
    answer = ask(client, BOTH, seed=7)
    message = answer.choices[0].message
    assert message.content == "a red mill "
    (image,) = message.images
    assert (image["type"], image["index"]) == ("image_url", 0)
    assert (image["size"], image["seed"], colour_of(image)) == ("4x2", 7, 7)
    assert answer.choices[0].finish_reason == "stop"
    chat, request = backend.requests
    assert isinstance(chat, ChatRequest)
    assert request.messages == chat.messages
    assert request.source is None


def test_an_image_alone_needs_no_text(client: openai.OpenAI, backend: FakeBackend) -> None:
    answer = ask(client, ["image"], seed=9)
    message = answer.choices[0].message
    assert message.content is None
    assert colour_of(message.images[0]) == 9
    assert [type(request) for request in backend.requests] == [ImageRequest]
    assert answer.usage.prompt_tokens == 7
    assert answer.usage.completion_tokens == 8
    assert answer.usage.completion_tokens_details.image_tokens == 8
    assert answer.usage.completion_tokens_details.text_tokens == 0


def test_the_usage_has_text_and_image(client: openai.OpenAI) -> None:
    usage = ask(client, BOTH).usage
    assert usage.prompt_tokens == USAGE.prompt_tokens + 7
    assert usage.completion_tokens == USAGE.completion_tokens + USAGE.audio_tokens + 8
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_speech_and_an_image_are_one_answer(client: openai.OpenAI) -> None:
    message = ask(client, ["text", "audio", "image"]).choices[0].message
    assert message.audio.transcript == "a red mill "
    assert len(message.images) == 1


def test_ming_s_own_fields_reach_the_drawing(client: openai.OpenAI, backend: FakeBackend) -> None:
    fields = {"size": "512x256", "steps": 8, "cfg": 1.5, "output_format": "jpeg"}
    answer = ask(client, ["image"], **fields)
    (request,) = drawn(backend)
    assert (request.size, request.steps, request.cfg) == ((256, 512), 8, 1.5)
    assert read(answer.choices[0].message.images[0]["image_url"]["url"]).format == "JPEG"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"image_config": {"aspect_ratio": "2:1", "image_size": "0.5K"}}, (2.0, 512)),
        ({"image_generation": {"width": 512, "height": 512}}, (None, 512)),
        ({"image": {"aspect_ratio": 3}, "image_config": {"image_size": "1K"}}, (3.0, 1024)),
        ({"width": 512, "height": 512}, (None, 512)),
    ],
)
def test_other_programs_fields_are_understood(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, Any], expected: tuple[Any, Any]
) -> None:
    post(http, 200, **fields)
    (request,) = drawn(backend)
    assert (request.aspect, request.resolution) == expected


def test_vllm_omni_s_fields_outside_of_image_are_those_of_it(
    http: httpx.Client, backend: FakeBackend
) -> None:
    fields = {"num_inference_steps": 8, "guidance_scale": 3.5, "negative_prompt": "rain"}
    post(http, 200, **fields, image={"cfg": 2.5})
    (request,) = drawn(backend)
    assert (request.steps, request.cfg, request.negative_prompt) == (8, 2.5, "rain")
    backend.requests.clear()
    reply = http.post("/v1/chat/completions", json={"messages": HELLO, **fields})
    assert reply.status_code == 200
    assert set(reply.headers["x-ignored-fields"].split(", ")) == set(fields)
    assert drawn(backend) == []


def test_the_latest_image_is_changed_and_is_in_the_prompt(
    http: httpx.Client, backend: FakeBackend
) -> None:
    answered = {
        "type": "image_url",
        "index": 0,
        "image_url": {"url": PNG},
        "seed": 3,
        "size": "4x2",
    }
    messages = [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b"}}]},
        {"role": "assistant", "content": None, "images": [answered]},
        {"role": "user", "content": "in winter"},
    ]
    post(http, 200, messages=messages)
    (request,) = drawn(backend)
    assert [part.sources for part in request.media] == [("http://a/b",), (PNG,)]
    assert request.source == 1
    assert request.media[1].field == "messages.1.images.0.image_url.url"
    post(http, 200, messages=messages, image={"source": "none"})
    assert drawn(backend)[-1].source is None
    backend.image_options = ImageOptions(max_references=1)
    post(http, 200, messages=messages)
    assert [part.sources for part in drawn(backend)[-1].media] == [(PNG,)]
    backend.image_options = ImageOptions()


def test_an_answer_with_an_image_is_sent_back_as_it_came(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    message = ask(client, BOTH).choices[0].message
    question: Any = {"role": "user", "content": "what is in it?"}
    again = client.chat.completions.create(
        model="org/ming", messages=[*HELLO, message, question], modalities=["text"]
    )
    assert again.choices[0].message.content == "what is in it? "
    answered = backend.requests[-1].messages[1]
    assert answered.role == "assistant"
    text, image = answered.content
    assert text.text == "a red mill "
    assert isinstance(image, MediaPart)
    assert image.sources == (message.images[0]["image_url"]["url"],)


def test_an_image_among_the_parts_of_an_answer_is_accepted(
    http: httpx.Client, backend: FakeBackend
) -> None:
    part = {"type": "image_url", "image_url": {"url": PNG}}
    messages = [*HELLO, {"role": "assistant", "content": [part]}, *HELLO]
    post(http, 200, messages=messages, modalities=["text"])
    assert [one.sources for one in backend.requests[-1].media] == [(PNG,)]


def test_a_stream_has_the_text_the_previews_and_the_image(http: httpx.Client) -> None:
    chunks = stream(
        http, image={"partial_images": 2, "seed": 5}, stream_options={"include_usage": True}
    )
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    kinds = [name for delta in deltas for name in delta if name != "role"]
    assert kinds == ["content"] * 4 + ["partial_images"] * 2 + ["images"]
    previews = [image for delta in deltas for image in delta.get("partial_images", ())]
    assert [preview["index"] for preview in previews] == [0, 1]
    assert {colour_of(preview) for preview in previews} == {0}
    (image,) = deltas[-2]["images"]
    assert (image["index"], image["seed"], colour_of(image)) == (0, 5, 5)
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["completion_tokens_details"]["image_tokens"] == 8


def test_openais_client_puts_a_stream_together(client: openai.OpenAI) -> None:
    extra = {"modalities": BOTH, "image": {"partial_images": 2, "seed": 6}}
    with client.chat.completions.stream(
        model="org/ming", messages=HELLO, extra_body=extra
    ) as events:
        message: Any = events.get_final_completion().choices[0].message
    assert message.content == "a red mill "
    assert colour_of(message.images[0]) == 6
    assert [colour_of(preview) for preview in message.partial_images] == [0, 0]


def test_each_choice_has_its_image(client: openai.OpenAI, backend: FakeBackend) -> None:
    answer: Any = client.chat.completions.create(
        model="org/ming", messages=HELLO, modalities=BOTH, n=3, seed=4
    )
    images = [choice.message.images[0] for choice in answer.choices]
    assert [image["seed"] for image in images] == [4, 5, 6]
    assert len({request.id for request in drawn(backend)}) == 3
    assert answer.seed_applies_to == ["text", "image"]


def test_random_seeds_differ(client: openai.OpenAI) -> None:
    seeds = {ask(client, ["image"]).choices[0].message.images[0]["seed"] for _ in range(3)}
    assert len(seeds) == 3


def test_an_answer_that_calls_a_function_has_no_image(
    http: httpx.Client, backend: FakeBackend
) -> None:
    called = ToolCalled(ToolCall("look", "{}"))
    backend.script = playing(Started(), called, Finished("stop", USAGE))
    answer = post(http, 200, tools=[TOOL])
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert "images" not in choice["message"]
    assert not drawn(backend)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"modalities": ["text"], "image": {}}, "image"),
        ({"image": {"partial_images": 1}}, "image.partial_images"),
        ({"image": {"background": "transparent"}}, "image.background"),
        ({"image": {"steps": 101}}, "image.steps"),
        ({"image": {"steps": 0}}, "image.steps"),
        ({"image": {"sise": "1x1"}}, "image.sise"),
        ({"image": {"size": "512x512", "aspect_ratio": 1}}, "image.aspect_ratio"),
        ({"image": {"negative_prompt": "rain", "cfg": 1}}, "image.negative_prompt"),
        ({"image_config": {"image_size": "8K"}}, "image.image_size"),
        ({"modalities": ["image"], "tools": [TOOL]}, "tools"),
        ({"modalities": ["image"], "logprobs": True}, "logprobs"),
        ({"modalities": ["image"], "response_format": {"type": "json_object"}}, "response_format"),
        ({"n": 5}, "n"),
        ({"modalities": ["image", "image"]}, "modalities"),
        ({"messages": [{"role": "user", "content": "a", "images": [PNG]}]}, "messages.0.images.0"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    http: httpx.Client, fields: dict[str, Any], param: str
) -> None:
    assert post(http, **fields)["error"]["param"] == param


def test_sound_and_video_in_the_conversation_are_refused_by_name(http: httpx.Client) -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "aaaa", "format": "wav"}}
    error = post(http, messages=[{"role": "user", "content": [sound]}])["error"]
    assert error["param"] == "messages.0.content.0.input_audio.data"


def test_only_an_answer_may_have_images_of_its_own(http: httpx.Client) -> None:
    image = {"type": "image_url", "image_url": {"url": PNG}}
    error = post(http, messages=[{"role": "user", "content": "a", "images": [image]}])["error"]
    assert error["param"] == "messages.0.images"


def test_a_server_that_draws_no_images_says_so(http: httpx.Client, backend: FakeBackend) -> None:
    backend.capabilities = CAPABILITIES
    error = post(http)["error"]
    assert error["param"] == "modalities"
    assert "draws no images" in error["message"]


async def refuse_size(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
    raise InvalidRequest("size: too narrow", param="size")
    yield


async def be_full(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
    raise Overloaded("full", retry_after_s=2.0)
    yield


async def end_early(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
    yield ImageStep(0, 1, 2)


def test_errors_of_the_drawing_have_their_status_and_name(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.image_script = refuse_size
    assert post(http)["error"]["param"] == "image.size"
    backend.image_script = be_full
    reply = http.post(
        "/v1/chat/completions",
        json={"messages": HELLO, "modalities": ["image"], "stream": True},
    )
    assert reply.status_code == 429
    backend.image_script = end_early
    assert post(http, 500)["error"]["code"] == "engine_failed"


def test_a_text_that_takes_long_leaves_less_time_for_the_image(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(Started(), Finished("stop", USAGE), pause=0.1)
    post(http, 200, timeout=5)
    (request,) = drawn(backend)
    assert request.timeout_s is not None
    assert 4 < request.timeout_s < 4.9


@pytest.mark.parametrize(
    ("served", "draws_images"), [("running_server", False), ("running_drawing_server", True)]
)
def test_the_example_with_an_image_is_where_images_are_drawn(
    request: pytest.FixtureRequest, served: str, draws_images: bool
) -> None:
    url = request.getfixturevalue(served).url
    route = httpx.get(f"{url}/openapi.json").json()["paths"]["/v1/chat/completions"]["post"]
    examples = route["requestBody"]["content"]["application/json"]["examples"]
    assert ("text_and_image" in examples) == draws_images
