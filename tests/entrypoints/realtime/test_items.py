"""Items of a conversation: what was heard of them, and their wire form."""

import base64

import numpy as np
import pytest

from sglang_omni.entrypoints.realtime.audio_codec import encode_wav
from sglang_omni.entrypoints.realtime.items import (
    AudioContent,
    CallItem,
    CallOutputItem,
    ImageContent,
    ItemRole,
    MessageItem,
    SpeechContent,
    SpokenSegment,
    TextContent,
    drop_media,
    estimate_bytes,
    item_to_json,
    truncate_words,
)

SEGMENTS = (SpokenSegment("One two three. ", 0.0), SpokenSegment("Four five.", 1000.0))


@pytest.mark.parametrize(
    ("played_ms", "words"),
    [
        (0, ""),
        (300, "One"),
        (600, "One two"),
        (550, "One two"),
        (999, "One two three."),
        (1000, "One two three. "),
        (1450, "One two three. Four"),
        (2000, "One two three. Four five."),
        (9000, "One two three. Four five."),
    ],
)
def test_words_are_heard_at_an_even_pace_inside_a_segment(played_ms: float, words: str) -> None:
    assert truncate_words(SEGMENTS, 2000, played_ms) == words


def test_chinese_is_cut_between_characters_and_a_single_word_is_not_cut() -> None:
    assert truncate_words((SpokenSegment("你好世界", 0.0),), 400, 210) == "你好"
    assert truncate_words((SpokenSegment("你好 world", 0.0),), 800, 500) == "你好"
    assert truncate_words((SpokenSegment("Wonderful", 0.0),), 900, 500) == ""


def test_a_speech_that_nobody_spoke_over_was_heard_whole() -> None:
    assert SpeechContent(SEGMENTS, 2000).transcript == "One two three. Four five."
    assert SpeechContent(SEGMENTS, 2000, 600).transcript == "One two"


def test_the_wire_form_names_parts_by_who_made_them() -> None:
    kinds: dict[ItemRole, str] = {
        "user": "input_text",
        "system": "input_text",
        "assistant": "output_text",
    }
    for role, kind in kinds.items():
        item = MessageItem("a", role, (TextContent("hi"),))
        assert item_to_json(item)["content"] == [{"type": kind, "text": "hi"}]
    spoken = MessageItem("a", "assistant", (SpeechContent(SEGMENTS, 2000),), "incomplete")
    assert item_to_json(spoken) == {
        "id": "a",
        "object": "realtime.item",
        "type": "message",
        "status": "incomplete",
        "role": "assistant",
        "content": [{"type": "output_audio", "transcript": "One two three. Four five."}],
    }


def test_sound_is_in_the_wire_form_only_if_asked_for() -> None:
    samples = np.arange(100).astype(np.int16)
    item = MessageItem("a", "user", (AudioContent(encode_wav(samples), 6),))
    (bare,), (full,) = (item_to_json(item, with_audio)["content"] for with_audio in (False, True))
    assert bare == {"type": "input_audio", "transcript": None}
    assert base64.b64decode(full["audio"]) == samples.tobytes()


def test_calls_and_their_outputs() -> None:
    call = item_to_json(CallItem("a", "call_1", "look", '{"at": 1}'))
    assert (call["type"], call["name"], call["call_id"]) == ("function_call", "look", "call_1")
    output = item_to_json(CallOutputItem("b", "call_1", "a mill"))
    assert (output["type"], output["output"]) == ("function_call_output", "a mill")


def test_letting_media_go_keeps_what_was_written_down() -> None:
    parts = (
        TextContent("see"),
        ImageContent("data:," + "x" * 994),
        AudioContent(b"y" * 1000, 5, "hello"),
    )
    item = MessageItem("a", "user", parts)
    assert estimate_bytes(item) == 3 + 1000 + 1005
    bare = drop_media(item)
    assert estimate_bytes(bare) == 8
    assert bare == MessageItem(
        "a", "user", (TextContent("see"), ImageContent(None), AudioContent(None, 5, "hello"))
    )
