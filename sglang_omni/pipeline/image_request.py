"""Requests for images, and the events that answer them."""

from dataclasses import dataclass, replace

import numpy as np

from sglang_omni.models.image import Size
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Message, TextPart
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.queueing.policy import Priority

PROMPT, NEGATIVE_PROMPT = "prompt", "negative_prompt"


@dataclass(frozen=True)
class ImageRequest:
    """A validated request to draw an image for each of `seeds`.

    Attributes:
        prompt: What to draw.
        seeds: The seed of each image's noise.
        references: Images to edit. The first one is changed, the model sees the others.
        size: Requested height and width; None leaves it to `aspect` or to the first reference.
        aspect: Requested ratio of width to height.
        resolution: Side of a square image in pixels; the model draws the nearest it can.
        steps: Number of steps.
        cfg: How strongly the image follows the prompt.
        negative_prompt: What guidance leads away from; None for the image without a prompt.
        previews: How often each image is shown before it is finished.

    The other fields are those of `ChatRequest`.
    """

    id: str
    prompt: str
    seeds: tuple[int, ...]
    references: tuple[MediaPart, ...] = ()
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

    def to_chats(self, references: tuple[MediaPart, ...]) -> dict[str, ChatRequest]:
        """Return the chat of each prompt, by the field that the prompt is in.

        The negative prompt comes with the same images as the other one.
        """
        chats = {PROMPT: self.to_chat(references)}
        if self.negative_prompt is not None:
            negative = replace(self, prompt=self.negative_prompt)
            chats[NEGATIVE_PROMPT] = negative.to_chat(references)
        return chats

    def to_chat(self, references: tuple[MediaPart, ...]) -> ChatRequest:
        """Return the chat whose prompt the query tokens follow; nothing is answered to it."""
        return ChatRequest(
            id=self.id,
            messages=(Message("user", (*references, TextPart(self.prompt))),),
            sampling=SamplingParams(max_tokens=1, temperature=0.0),
            tenant=self.tenant,
            priority=self.priority,
            timeout_s=self.timeout_s,
        )


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
