"""OpenAI's Responses API on the running server, with the official client."""

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import openai
import pytest
from PIL import Image, ImageDraw

from tests.server.running import RunningServer
from tests.server.test_default_model import recording
from tests.server.test_readme import example, promised

DOCUMENT = (Path(__file__).parents[2] / "docs" / "responses.md").read_text(encoding="utf-8")
PLACE = {
    "type": "object",
    "properties": {"at": {"enum": ["mill", "river"]}},
    "required": ["at"],
    "additionalProperties": False,
}


@pytest.fixture
def client(default_server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=default_server.api, api_key="none", max_retries=0)


def red_circle() -> dict[str, Any]:
    picture, file = Image.new("RGB", (256, 256), "white"), io.BytesIO()
    ImageDraw.Draw(picture).ellipse((60, 60, 180, 180), fill="red")
    picture.save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return {"type": "input_image", "image_url": f"data:image/png;base64,{data}", "detail": "auto"}


def sound(data: bytes) -> dict[str, Any]:
    audio = {"data": base64.b64encode(data).decode(), "format": "wav"}
    return {"type": "input_audio", "input_audio": audio}


def message(part: dict[str, Any], text: str) -> Any:
    return [{"role": "user", "content": [part, {"type": "input_text", "text": text}]}]


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.responses.create(**{"model": "ming-omni", "max_output_tokens": 30, **fields})


def test_the_example_gives_what_stands_beside_it(
    default_server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    exec(example(text, default_server), {})
    assert capsys.readouterr().out.splitlines() == promised(text)
    assert len(promised(text)) == 3


def test_a_picture_is_seen_and_stays_in_the_conversation(client: openai.OpenAI) -> None:
    first = ask(client, input=message(red_circle(), "What colour is the circle?"))
    assert first.output_text == "Red."
    plain = ask(client, input="What is 17 + 25?")
    second = ask(client, input="What is 17 + 25?", previous_response_id=first.id)
    # The prompt is the whole conversation, which begins as the first one did.
    assert second.usage.input_tokens > first.usage.input_tokens > plain.usage.input_tokens


def test_a_recording_is_heard_and_a_bad_one_named(client: openai.OpenAI) -> None:
    answer = ask(client, input=message(sound(recording("alpha")), "What is said?"))
    assert answer.usage.input_tokens > ask(client, input="What is said?").usage.input_tokens
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, input=message(sound(b"no sound"), "What is said?"))
    assert caught.value.param == "input.0.content.0.input_audio.data"


def test_a_function_is_called_and_its_result_is_taken(client: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", "name": "look", "parameters": PLACE, "strict": True}]
    first = ask(
        client,
        input="Look around.",
        tools=tools,
        tool_choice="required",
        parallel_tool_calls=False,
        max_output_tokens=120,
    )
    assert first.status == "completed", first
    (call,) = first.output
    assert (call.type, call.name) == ("function_call", "look")
    assert json.loads(call.arguments)["at"] in ("mill", "river")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "A red car."}
    second = ask(client, input=[result], previous_response_id=first.id, tools=tools)
    assert second.status in ("completed", "incomplete")
    assert second.usage.input_tokens > first.usage.input_tokens
