"""The tool `image_generation` of `POST /v1/responses`: forced, called, sent back and refused."""

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
from openai.types.responses import Response
from PIL import Image

from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest, ImageStep
from sglang_omni.pipeline.request import (
    ChatRequest,
    Finished,
    MediaPart,
    Message,
    Started,
    TextDelta,
    TextPart,
    ToolCalled,
    Usage,
)
from sglang_omni.protocol.errors import EngineFailed, Overloaded
from sglang_omni.protocol.tools import ToolCall, ToolCallDelta, ToolCallStart
from tests.entrypoints.http.fake import FakeBackend, playing
from tests.testing.family import CAPABILITIES

PATH = "/v1/responses"
PNG = "data:image/png;base64,iVBORw0KGgo="
TOOL: dict[str, Any] = {"type": "image_generation"}
FORCED: dict[str, Any] = {"tools": [TOOL], "tool_choice": TOOL}
LOOK: dict[str, Any] = {"type": "function", "name": "look"}
EVENT = "response.image_generation_call"


def calling(*arguments: dict[str, Any], name: str = "image_generation") -> Any:
    """An answer that says something, and then calls the tool for each of the arguments."""
    calls = [
        event
        for given in arguments
        for event in (
            ToolCallStart(name),
            ToolCallDelta(json.dumps(given)),
            ToolCalled(ToolCall(name, json.dumps(given))),
        )
    ]
    return playing(Started(), TextDelta("Here."), *calls, Finished("stop", Usage(7, 0, 5)))


@pytest.fixture(autouse=True)
def drawing(backend: FakeBackend) -> None:
    backend.capabilities = replace(CAPABILITIES, image_output=True)


def ask(client: openai.OpenAI, **fields: Any) -> dict[str, Any]:
    """Return a response whose form the official types have checked."""
    fields = {"model": "org/ming", "input": "a red mill", **fields}
    raw = client.responses.with_raw_response.create(**fields)
    Response.model_validate(json.loads(raw.text))
    answer: dict[str, Any] = json.loads(raw.text)
    return answer


def drawn(backend: FakeBackend) -> list[ImageRequest]:
    return [request for request in backend.requests if isinstance(request, ImageRequest)]


def chats(backend: FakeBackend) -> list[ChatRequest]:
    return [request for request in backend.requests if isinstance(request, ChatRequest)]


def colour_of(content: str) -> int:
    image = Image.open(io.BytesIO(base64.b64decode(content)))
    return int(np.asarray(image.convert("RGB")).mean())


def refuse(http: httpx.Client, param: str, **fields: Any) -> str:
    reply = http.post(PATH, json={"input": "a mill", **fields})
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["param"] == param, error
    return str(error["message"])


def stream(http: httpx.Client, **fields: Any) -> list[dict[str, Any]]:
    reply = http.post(PATH, json={"input": "a mill", "stream": True, **fields})
    blocks = [block.split("\n") for block in reply.text.split("\n\n") if block]
    events = [json.loads(lines[-1].removeprefix("data: ")) for lines in blocks]
    assert [event["type"] for event in events] == [
        lines[0].removeprefix("event: ") for lines in blocks
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


@pytest.mark.parametrize(
    "choice",
    [
        TOOL,
        "required",
        {"type": "allowed_tools", "mode": "required", "tools": [TOOL]},
    ],
)
def test_an_image_that_must_be_drawn_is_the_answer(
    client: openai.OpenAI, backend: FakeBackend, choice: Any
) -> None:
    tool = {**TOOL, "size": "1536x1024", "seed": 9, "steps": 8}
    answer = ask(client, tools=[tool], tool_choice=choice)
    (item,) = answer["output"]
    assert (item["type"], item["status"]) == ("image_generation_call", "completed")
    assert item["id"].startswith("ig_")
    assert (colour_of(item["result"]), item["seed"], item["size"]) == (9, 9, "4x2")
    assert "revised_prompt" not in item
    assert [type(request) for request in backend.requests] == [ImageRequest]
    (request,) = drawn(backend)
    assert (request.size, request.steps) == ((1024, 1536), 8)
    assert request.messages == (Message("user", (TextPart("a red mill"),)),)
    usage = answer["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (7, 8, 15)
    assert usage["output_tokens_details"]["image_tokens"] == 8
    assert answer["tools"][0]["size"] == "1536x1024"


def test_the_model_calls_for_an_image(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = calling({"prompt": "a mill in snow"})
    answer = ask(client, tools=[LOOK, TOOL], extra_body={"seed": 4})
    message, item = answer["output"]
    assert message["content"][0]["text"] == "Here."
    assert item["revised_prompt"] == "a mill in snow"
    assert (colour_of(item["result"]), item["seed"]) == (4, 4)
    (chat,) = chats(backend)
    assert [tool.name for tool in chat.tools] == ["look", "image_generation"]
    assert set(chat.tools[1].parameters["properties"]) == {"prompt"}
    (request,) = drawn(backend)
    assert request.messages == (Message("user", (TextPart("a mill in snow"),)),)
    assert request.source is None
    assert answer["usage"]["input_tokens"] == 7 + 7
    assert answer["usage"]["output_tokens"] == 5 + 8


def test_a_call_may_change_the_latest_image(client: openai.OpenAI, backend: FakeBackend) -> None:
    picture = {"type": "input_image", "image_url": PNG}
    text = {"type": "input_text", "text": "make it winter"}
    conversation = [{"role": "user", "content": [picture, picture, text]}]
    for change, source, count in ((True, 0, 2), (False, None, 0)):
        backend.requests.clear()
        backend.script = calling({"prompt": "in winter", "change": change})
        ask(client, input=conversation, tools=[TOOL])
        (chat,) = chats(backend)
        assert set(chat.tools[0].parameters["properties"]) == {"prompt", "change"}
        (request,) = drawn(backend)
        assert request.source == source
        assert len(request.media) == count
    backend.requests.clear()
    backend.script = calling({"prompt": "in winter", "change": True})
    ask(client, input=conversation, tools=[{**TOOL, "action": "generate"}])
    assert drawn(backend)[0].source is None


def test_other_functions_are_called_as_before(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = calling({}, name="look")
    answer = ask(client, tools=[TOOL, LOOK])
    assert [item["type"] for item in answer["output"]] == ["message", "function_call"]
    assert drawn(backend) == []


def test_calls_that_cannot_be_drawn_are_counted(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    prompts = [{"prompt": f"mill {number}"} for number in range(6)]
    backend.script = calling({"prompt": " "}, {"text": "a mill"}, *prompts)
    answer = ask(client, tools=[TOOL])
    images = [item for item in answer["output"] if item["type"] == "image_generation_call"]
    assert len(images) == backend.image_options.max_n == 4
    assert answer["invalid_tool_calls"] == 2 + 2


def test_a_tool_that_must_not_be_used_is_not_offered(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    answer = ask(client, tools=[TOOL], tool_choice="none")
    assert chats(backend)[0].tools == ()
    assert answer["output"][0]["type"] == "message"


def test_a_stream_tells_of_the_image_while_it_is_drawn(http: httpx.Client) -> None:
    events = stream(http, tools=[{**TOOL, "partial_images": 2, "seed": 5}], tool_choice=TOOL)
    kinds = [event["type"] for event in events]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        f"{EVENT}.in_progress",
        f"{EVENT}.generating",
        f"{EVENT}.partial_image",
        f"{EVENT}.partial_image",
        f"{EVENT}.completed",
        "response.output_item.done",
        "response.completed",
    ]
    added, *_, done, last = events[2:]
    assert added["item"]["status"] == "in_progress"
    item_id = added["item"]["id"]
    previews = [event for event in events if event["type"].endswith("partial_image")]
    assert [event["partial_image_index"] for event in previews] == [0, 1]
    assert all(event["item_id"] == item_id and event["output_index"] == 0 for event in previews)
    assert all(colour_of(event["partial_image_b64"]) >= 0 for event in previews)
    assert done["item"] == last["response"]["output"][0]
    assert colour_of(done["item"]["result"]) == 5


def test_a_call_is_not_streamed_as_one_of_a_function(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = calling({"prompt": "a mill"})
    events = stream(http, tools=[TOOL])
    assert not any("function_call" in event["type"] for event in events)
    kinds = [event["item"]["type"] for event in events if event["type"].endswith("item.done")]
    assert kinds == ["message", "image_generation_call"]


def test_an_image_that_fails_ends_the_stream(http: httpx.Client, backend: FakeBackend) -> None:
    async def fail(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        yield ImageStep(0, 1, 4)
        raise EngineFailed("the image engine ended")

    backend.image_script = fail
    *_, done, last = stream(http, **FORCED)
    assert (done["item"]["status"], done["item"]["result"]) == ("failed", None)
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "server_error"


def test_an_early_refusal_has_its_status(http: httpx.Client, backend: FakeBackend) -> None:
    async def refuse_it(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        raise Overloaded("too many images")
        yield ImageStep(0, 1, 4)

    backend.image_script = refuse_it
    reply = http.post(PATH, json={"input": "a mill", "stream": True, **FORCED})
    assert reply.status_code == 429


def test_a_drawn_image_is_part_of_the_conversation(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    first = ask(client, **FORCED)
    item = first["output"][0]
    later = {"role": "user", "content": "make it winter"}
    question = {"role": "user", "content": "a red mill"}
    by_id = {"type": "image_generation_call", "id": item["id"]}
    reference = {"type": "item_reference", "id": item["id"]}
    ways: list[dict[str, Any]] = [
        {"previous_response_id": first["id"], "input": [later]},
        *({"input": [question, sent, later]} for sent in (item, by_id, reference)),
    ]
    for fields in ways:
        backend.requests.clear()
        ask(client, **fields, **FORCED)
        (request,) = drawn(backend)
        assert [message.role for message in request.messages] == ["user", "assistant", "user"]
        (part,) = request.messages[1].content
        assert isinstance(part, MediaPart)
        assert part.sources == (f"data:image/png;base64,{item['result']}",)
        assert request.source == 0
    listed = client.responses.input_items.list(first["id"])
    assert [one.type for one in listed.data] == ["message"]


def test_an_image_and_text_of_one_answer_are_one_message(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = calling({"prompt": "a mill"})
    first = ask(client, tools=[TOOL])
    backend.script = playing(TextDelta("Red."), Finished("stop", Usage(7, 0, 5)))
    ask(client, input="Which colour has it?", previous_response_id=first["id"])
    answer = chats(backend)[-1].messages[1]
    assert answer.role == "assistant"
    assert [type(part) for part in answer.content] == [TextPart, MediaPart]


def test_what_cannot_be_drawn_is_named(http: httpx.Client, backend: FakeBackend) -> None:
    assert "requires the tool" in refuse(http, "tool_choice", tool_choice=TOOL)
    refuse(http, "tool_choice", tools=[LOOK], tool_choice=TOOL)
    refuse(http, "tools.1", tools=[TOOL, TOOL])
    refuse(http, "tools.0", tools=[{**LOOK, "name": "image_generation"}, TOOL])
    refuse(http, "tools.0.size", tools=[{**TOOL, "size": "big"}])
    refuse(http, "tools.0.steps", tools=[{**TOOL, "steps": 101}], tool_choice=TOOL)
    refuse(http, "tools.0.steps", tools=[{**TOOL, "steps": 101}])
    refuse(http, "tools.0.partial_images", tools=[{**TOOL, "partial_images": 1}])
    refuse(http, "tools.0.background", tools=[{**TOOL, "background": "transparent"}])
    mask = {"file_id": "a"}
    refuse(http, "tools.0.input_image_mask", tools=[{**TOOL, "input_image_mask": mask}])
    refuse(http, "tools.0.action", tools=[{**TOOL, "action": "paint"}])
    refuse(http, "top_logprobs", **FORCED, top_logprobs=2)
    refuse(http, "text.format", **FORCED, text={"format": {"type": "json_object"}})
    gone = [{"type": "image_generation_call", "id": "ig_" + "0" * 32 + "_0"}]
    refuse(http, "input.0.id", input=gone)
    backend.capabilities = CAPABILITIES
    assert "draws no images" in refuse(http, "tools.0", tools=[TOOL])


def test_audio_is_refused_where_an_image_must_be_drawn(http: httpx.Client) -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}
    conversation = [{"role": "user", "content": [audio]}]
    refuse(http, "input.0.content.0.input_audio.data", input=conversation, **FORCED)


def test_openai_s_other_fields_are_accepted(client: openai.OpenAI) -> None:
    fields = {"model": "gpt-image-1", "moderation": "low", "input_fidelity": "high"}
    answer = ask(client, tools=[{**TOOL, **fields, "action": "auto"}], tool_choice=TOOL)
    assert answer["output"][0]["type"] == "image_generation_call"
