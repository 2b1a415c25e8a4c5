"""Which images of a conversation a drawing sees, and which one it changes. Pure functions."""

from collections.abc import Sequence
from dataclasses import replace

from sglang_omni.pipeline.request import MediaPart, Message, list_media
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.images import ImageSourceChoice


def require_images_only(messages: Sequence[Message]) -> None:
    """Check that a conversation has no media but images: the model draws from text and images.

    Raises `InvalidRequest`, naming the field.
    """
    for part in list_media(messages):
        if part.kind != "image":
            raise InvalidRequest(
                f"{part.field}: images are drawn from text and images, not from {part.kind}",
                param=part.field,
            )


def keep_latest_images(messages: Sequence[Message], limit: int) -> tuple[Message, ...]:
    """Return the messages with their latest `limit` images; their texts stay."""
    num_dropped = max(0, len(list_media(messages)) - limit)
    kept: list[Message] = []
    for message in messages:
        images = [part for part in message.content if isinstance(part, MediaPart)]
        dropped = images[:num_dropped]
        num_dropped -= len(dropped)
        content = tuple(part for part in message.content if not _is_one_of(part, dropped))
        kept.append(replace(message, content=content))
    return tuple(kept)


def choose_source(messages: Sequence[Message], choice: ImageSourceChoice) -> int | None:
    """Return the index of the image to change among all images, or None to draw a new one.

    The latest message with images may show several. The first of them is changed, as it is in an
    edit by the image route. The released model always changes the first image of a conversation.
    """
    counts = [len(list_media([message])) for message in messages]
    with_images = [index for index, count in enumerate(counts) if count]
    if choice == "none" or not with_images:
        return None
    return 0 if choice == "first" else sum(counts[: with_images[-1]])


def _is_one_of(part: object, images: Sequence[MediaPart]) -> bool:
    # Equal images may occur twice.
    return any(part is image for image in images)
