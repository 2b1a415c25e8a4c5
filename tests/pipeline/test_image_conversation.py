"""Which images of a conversation a drawing sees, and which one it changes."""

import pytest

from sglang_omni.pipeline.image_conversation import (
    choose_source,
    keep_latest_images,
    require_images_only,
)
from sglang_omni.pipeline.request import MediaPart, Message, TextPart, list_media
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.images import ImageSourceChoice


def image(name: str) -> MediaPart:
    return MediaPart("image", (name,), f"messages.{name}")


TALK = (
    Message("user", (image("a"), image("b"), TextPart("put the hat of b on a"))),
    Message("assistant", (TextPart("done"), image("c"))),
    Message("user", (TextPart("now in winter"),)),
)


@pytest.mark.parametrize(("choice", "source"), [("latest", 2), ("first", 0), ("none", None)])
def test_the_choice_names_the_image_to_change(
    choice: ImageSourceChoice, source: int | None
) -> None:
    assert choose_source(TALK, choice) == source


def test_of_a_message_with_several_images_the_first_is_changed() -> None:
    assert choose_source(TALK[:1], "latest") == 0
    assert choose_source((*TALK, *TALK[:1]), "latest") == 3


def test_a_conversation_without_images_has_none_to_change() -> None:
    assert choose_source(TALK[2:], "latest") is None
    assert choose_source(TALK[2:], "first") is None


@pytest.mark.parametrize(("limit", "kept"), [(3, "abc"), (2, "bc"), (1, "c"), (0, "")])
def test_the_latest_images_are_kept_and_all_texts(limit: int, kept: str) -> None:
    messages = keep_latest_images(TALK, limit)
    assert "".join(str(part.sources[0]) for part in list_media(messages)) == kept
    texts = [part.text for m in messages for part in m.content if isinstance(part, TextPart)]
    assert texts == ["put the hat of b on a", "done", "now in winter"]


def test_an_image_that_occurs_twice_is_dropped_once() -> None:
    messages = (Message("user", (image("a"), TextPart("x"), image("a"))),)
    assert len(list_media(keep_latest_images(messages, 1))) == 1


def test_other_media_are_refused_by_name() -> None:
    sound = MediaPart("audio", ("s",), "messages.0.content.1.input_audio.data")
    with pytest.raises(InvalidRequest) as raised:
        require_images_only((Message("user", (image("a"), sound)),))
    assert raised.value.param == sound.field
    require_images_only(TALK)
