"""An object that is filled in is the object that would have been encoded."""

import base64
import json

import pytest

from sglang_omni.entrypoints.http.responses.chat_chunks import ChunkWriter
from sglang_omni.entrypoints.http.responses.chat_completion import Answer
from sglang_omni.entrypoints.http.responses.json_template import JsonTemplate
from sglang_omni.entrypoints.http.responses.sse import encode_json
from sglang_omni.pipeline.request import TextDelta

STRINGS = ["", "plain", 'a "quote" and a \\', "你\u2028好\u0085é", "\x00\n\t\x7f", "😀", "\ud800"]


@pytest.mark.parametrize("text", STRINGS)
def test_any_string_is_escaped_as_the_encoder_does(text: str) -> None:
    def make(text: str) -> dict[str, object]:
        return {"id": "x", "choices": [{"delta": {"content": text}, "n": None}]}

    assert JsonTemplate(make).fill(text) == encode_json(make(text))


def test_what_needs_no_escape_is_put_in_as_it_is() -> None:
    data = base64.b64encode(bytes(range(256)))
    template = JsonTemplate(lambda text: {"audio": {"id": "a", "data": text}})
    assert template.fill_plain(data) == encode_json({"audio": {"id": "a", "data": data.decode()}})


@pytest.mark.parametrize("include_usage", [False, True])
async def test_a_chunk_of_text_has_every_field_of_the_answers_chunks(include_usage: bool) -> None:
    async def remember(audio_id: str, transcript: str) -> bool:
        raise AssertionError("there is no audio")

    answer = Answer('r"1', "org/ming", True, None, None, include_usage, remember)
    writer = ChunkWriter(answer, index=2)
    first, text = await writer.write(TextDelta("one"))
    assert isinstance(first, dict)
    assert isinstance(text, bytes)
    choice = {"index": 2, "delta": {"content": "one"}, "finish_reason": None}
    assert json.loads(text) == {**first, "choices": [choice]}
