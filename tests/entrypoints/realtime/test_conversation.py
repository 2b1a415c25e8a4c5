"""The items of a conversation: order, budget, and what the model reads."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sglang_omni.entrypoints.realtime.audio_codec import decode_wav, encode_wav
from sglang_omni.entrypoints.realtime.context import build_messages, drop_oldest_half
from sglang_omni.entrypoints.realtime.conversation import Conversation, ItemError
from sglang_omni.entrypoints.realtime.items import (
    AudioContent,
    ImageContent,
    Item,
    ItemRole,
    MessageItem,
    SpeechContent,
    SpokenSegment,
    TextContent,
    estimate_bytes,
)
from sglang_omni.pipeline.request import MediaPart, Message, TextPart


def text(name: str, said: str = "hi", role: ItemRole = "user") -> MessageItem:
    return MessageItem(name, role, (TextContent(said),))


def clip(name: str, size: int = 1000, transcript: str | None = None) -> MessageItem:
    return MessageItem(name, "user", (AudioContent(b"x" * size, 1000, transcript),))


def conversation(*items: Item, max_bytes: int = 10_000) -> Conversation:
    made = Conversation(max_bytes)
    for item in items:
        made.add(item)
    return made


def names(made: Conversation) -> list[str]:
    return [item.id for item in made]


def text_of(message: Message) -> str:
    (part,) = message.content
    assert isinstance(part, TextPart)
    return part.text


def test_items_stand_where_they_were_put() -> None:
    made = conversation(text("a"), text("b"))
    assert made.add(text("c"), "a") == "a"
    assert made.add(text("d"), "root") is None
    assert made.add(text("e")) == "b"
    assert names(made) == ["d", "a", "c", "b", "e"]
    assert [made.previous_id(name) for name in ("d", "c", "e")] == [None, "a", "b"]
    assert made.last_id == "e"


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda made: made.add(text("a")), "item_create_duplicate_item_id"),
        (lambda made: made.add(text("b"), "z"), "item_create_invalid_previous_item_id"),
        (lambda made: made.delete("z"), "item_delete_invalid_item_id"),
        (lambda made: made.find("z", "retrieve"), "item_retrieve_invalid_item_id"),
        (lambda made: made.find("z", "truncate"), "item_truncate_invalid_item_id"),
    ],
)
def test_items_that_cannot_be_meant_are_refused_by_code(
    act: Callable[[Conversation], object], code: str
) -> None:
    made = conversation(text("a"))
    with pytest.raises(ItemError) as error:
        act(made)
    assert error.value.code == code
    assert names(made) == ["a"]


def test_beyond_the_budget_the_oldest_media_go_and_their_items_stay() -> None:
    made = conversation(
        clip("a"), clip("b", transcript="two"), text("c"), clip("d"), max_bytes=2100
    )
    assert names(made) == ["a", "b", "c", "d"]
    assert made.find("a", "retrieve") == MessageItem("a", "user", (AudioContent(None, 1000, None),))
    assert made.find("b", "retrieve") == clip("b", transcript="two")
    made.add(clip("e"))
    assert made.find("b", "retrieve") == MessageItem(
        "b", "user", (AudioContent(None, 1000, "two"),)
    )
    assert made.find("e", "retrieve") == clip("e")
    assert made.size_bytes == sum(map(estimate_bytes, made)) <= 2100


def test_the_newest_item_keeps_its_sound_whatever_the_budget() -> None:
    made = conversation(clip("a"), clip("b", 5000), max_bytes=2000)
    assert made.find("b", "retrieve") == clip("b", 5000)


def test_what_is_replaced_or_deleted_is_no_longer_counted() -> None:
    made = conversation(text("a", "four"), text("b", "x"))
    made.replace(text("a", "fourteen"))
    assert made.size_bytes == 9
    made.delete("a")
    assert made.size_bytes == 1
    made.replace(text("a", "came too late"))
    assert names(made) == ["b"]


def test_text_that_cannot_fit_has_no_room() -> None:
    made = conversation(clip("a", 1000), text("b", "x" * 500), max_bytes=1600)
    assert made.has_room(text("c", "x" * 1100))
    assert not made.has_room(text("c", "x" * 1101))


def test_the_model_reads_the_instructions_then_what_was_said() -> None:
    spoken = SpeechContent(
        (SpokenSegment("I see. ", 0.0), SpokenSegment("More.", 500.0)), 1000, 500
    )
    messages = build_messages(
        "Be kind.",
        [
            text("s", "It is noon.", "system"),
            MessageItem(
                "p", "user", (ImageContent("http://x/y.png", "low"), TextContent("What is this?"))
            ),
            MessageItem("a", "assistant", (spoken,), "incomplete"),
            clip("c"),
        ],
    )
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    assert text_of(messages[0]) == "Be kind.\n\nIt is noon."
    picture, question = messages[1].content
    assert isinstance(picture, MediaPart)
    assert question == TextPart("What is this?")
    assert (picture.kind, picture.sources) == ("image", ("http://x/y.png",))
    assert picture.max_pixels == 512 * 512
    # Only what was heard before the user spoke.
    assert text_of(messages[2]) == "I see. "
    (sound,) = messages[3].content
    assert isinstance(sound, MediaPart)
    assert sound.kind == "audio"


def speech(name: str, *samples: int, ms: int = 500) -> MessageItem:
    wav = encode_wav(np.array(samples, np.int16))
    return MessageItem(name, "user", (AudioContent(wav, ms),))


def test_speech_that_a_pause_has_split_is_heard_as_one() -> None:
    cancelled = MessageItem("x", "assistant", (SpeechContent((), 0.0, 0.0),), "incomplete")
    items = [
        text("a"),
        speech("b", 1, 2),
        cancelled,
        speech("c", 3),
        speech("d", 4),
        text("e", "Yes.", "assistant"),
        speech("f", 5),
    ]
    messages = build_messages("", items)
    assert [message.role for message in messages] == ["user", "user", "assistant", "user"]
    sounds = [part for message in messages for part in message.content if part != TextPart("a")]
    heard = [
        decode_wav(part.sources[0]).tolist()
        for part in sounds
        if isinstance(part, MediaPart) and isinstance(part.sources[0], bytes)
    ]
    assert heard == [[1, 2, 3, 4], [5]]


def test_turns_stay_apart_that_are_not_speech_alone_or_long_together() -> None:
    long = [speech("a", 1, ms=12_000), speech("b", 2, ms=9000), speech("c", 3, ms=9000)]
    assert [len(one.content) for one in build_messages("", long)] == [1, 1]
    with_text = MessageItem("m", "user", (AudioContent(encode_wav(np.zeros(3, np.int16)), 5),))
    mixed = replace(with_text, content=(*with_text.content, TextContent("Hear this.")))
    assert len(build_messages("", [speech("a", 1), mixed, text("t")])) == 3


def test_sound_that_was_let_go_is_read_as_its_transcript() -> None:
    items = [
        MessageItem("a", "user", (AudioContent(None, 1000, "hello"),)),
        MessageItem("b", "user", (AudioContent(None, 1000, None),)),
    ]
    messages = build_messages("", items)
    assert [text_of(message) for message in messages] == ["hello"]


def test_without_a_question_the_model_speaks_to_an_empty_turn() -> None:
    assert [m.role for m in build_messages("Greet.", [])] == ["system", "user"]
    after_answer = build_messages("", [text("a"), text("b", "yes", "assistant")])
    assert [m.role for m in after_answer] == ["user", "assistant", "user"]
    assert text_of(after_answer[-1]) == ""


def test_the_later_half_is_kept() -> None:
    items = [text(name) for name in "abcde"]
    assert [item.id for item in drop_oldest_half(items)] == ["d", "e"]
    assert [item.id for item in drop_oldest_half(items[:2])] == ["b"]
