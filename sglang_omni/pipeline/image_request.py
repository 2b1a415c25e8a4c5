"""Requests for images, and the events that answer them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sglang_omni.models.image import Size
from sglang_omni.pipeline.request import (
    ChatRequest,
    MediaPart,
    Message,
    TextPart,
    list_media,
)
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.queueing.policy import Priority

PROMPT, NEGATIVE_PROMPT = "prompt", "negative_prompt"


@dataclass(frozen=True)
class ImageRequest:
    """A validated request to draw an image for each of `seeds`.

    Attributes:
        messages: What to draw: a conversation of text and images, which the model sees.
        seeds: The seed of each image's noise.
        source: Index in `media` of the image to change; None draws a new one.
        size: Requested height and width; None leaves it to `aspect` or to the
            image to change.
        aspect: Requested ratio of width to height.
        resolution: Side of a square image in pixels; the model draws the nearest it can.
        steps: Number of steps.
        cfg: How strongly the image follows the prompt.
        negative_prompt: What guidance leads away from; None for the image without a prompt.
        previews: How often each image is shown before it is finished.

    The other fields are those of `ChatRequest`.
    """

    id: str
    messages: tuple[Message, ...]
    seeds: tuple[int, ...]
    source: int | None = None
    size: Size | None = None
    aspect: float | None = None
    resolution: int = 1024
    steps: int = 30
    cfg: float = 2.0
    negative_prompt: str | None = None
    previews: int = 0
    tenant: str | None = None
    priority: Priority = "normal"
    timeout_s: float | None = None

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """Return the images of all messages, in order."""
        return list_media(self.messages)

    def to_chats(self, media: Sequence[MediaPart]) -> dict[str, ChatRequest]:
        """Return the chat of each prompt, by the field that the prompt is in.

        The query tokens follow its prompt, and nothing is answered to it. `media` are in place of
        those of the messages. The negative prompt is one message, with the same images.
        """
        chats = {PROMPT: self._to_chat(tuple(_replace_media(self.messages, iter(media))))}
        if self.negative_prompt is not None:
            negative = Message("user", (*media, TextPart(self.negative_prompt)))
            chats[NEGATIVE_PROMPT] = self._to_chat((negative,))
        return chats

    def _to_chat(self, messages: tuple[Message, ...]) -> ChatRequest:
        return ChatRequest(
            id=self.id,
            messages=messages,
            sampling=SamplingParams(max_tokens=1, temperature=0.0),
            tenant=self.tenant,
            priority=self.priority,
            timeout_s=self.timeout_s,
        )


def _replace_media(messages: Sequence[Message], media: Iterator[MediaPart]) -> Iterator[Message]:
    for message in messages:
        content = (next(media) if isinstance(part, MediaPart) else part for part in message.content)
        yield replace(message, content=tuple(content))


@dataclass(frozen=True)
class ImageUsage:
    """Token counts of a request for images. The prompt's tokens are without the query tokens."""

    text_tokens: int = 0
    image_tokens: int = 0
    output_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """Return the tokens of the prompt."""
        return self.text_tokens + self.image_tokens


@dataclass(frozen=True)
class ImageStep:
    """The image `index` has done a step."""

    index: int
    step: int
    num_steps: int


@dataclass(frozen=True)
class PartialImage:
    """What the image `index` will probably be: uint8 [height, width, 3]."""

    index: int
    number: int
    pixels: np.ndarray


@dataclass(frozen=True)
class CompletedImage:
    """The image `index`, uint8 [height, width, 3], and the seed that it was made of.

    `usage` is what this image alone used.
    """

    index: int
    pixels: np.ndarray
    seed: int
    usage: ImageUsage


@dataclass(frozen=True)
class ImagesFinished:
    """The last event of every request for images that did not fail."""

    usage: ImageUsage


ImageEvent = ImageStep | PartialImage | CompletedImage | ImagesFinished
