"""What a model that draws provides: the prompt of an image, and batched steps in the image engine.

The API process has the `ImageFormat`, without torch; the engine has the `ImageModel`. The engine
owns which images take part in a step; an image in the making belongs to its family.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sglang_omni.models.chat import TokenizedPrompt, Turn

Size = tuple[int, int]
"""Height and width in pixels."""

ImageInProgress = Any
"""An image between two steps as its family has it; the engine only hands it on."""


@dataclass(frozen=True)
class ImageInput:
    """What one image is drawn from.

    Attributes:
        states: The thinker's states at the query tokens [queries, hidden]: float32, or uint16 bits
            of bfloat16.
        prompt: The rendered prompt, which may quote text that the image is to show.
        size: Requested height and width; None with `aspect` or `reference`, or for a square.
        aspect: Requested ratio of width to height.
        resolution: Side of a square image of the requested resolution, in pixels.
        steps: Number of steps, of which a step without effect is left out.
        guidance: How strongly the image follows the prompt; up to 1 there is no guidance.
        seed: Fixes the noise that the image is made of.
        reference: The image to edit, uint8 [height, width, 3].
        negative_states: States of a negative prompt, which guidance leads away from, in the form of
            `states`; None to lead away from the image without a prompt.
    """

    states: np.ndarray
    prompt: str
    size: Size | None
    aspect: float | None
    resolution: int
    steps: int
    guidance: float
    seed: int
    reference: np.ndarray | None = None
    negative_states: np.ndarray | None = None


@dataclass(frozen=True)
class ImagePlan:
    """The size of an image, and what it counts as in tokens."""

    size: Size
    tokens: int


@dataclass(frozen=True)
class ImagePrompt:
    """The thinker's prompt for an image.

    Attributes:
        prompt: Its tokens, query tokens included; its runs are those of the media.
        text: The same as text, which may quote what the image is to show.
        query_run: The inclusive run (first, last) of the query tokens.
        query_grid: The patch grid (t, h, w) that gives them their positions.
    """

    prompt: TokenizedPrompt
    text: str
    query_run: tuple[int, int]
    query_grid: tuple[int, int, int]


class ImageFormat(Protocol):
    """How a checkpoint is asked for an image. Imports no torch."""

    @property
    def query_rows(self) -> np.ndarray:
        """Return the embeddings of the query tokens [queries, hidden].

        They are float32, or uint16 bits of bfloat16.
        """

    def build_prompt(self, messages: Sequence[Turn]) -> ImagePrompt:
        """Return the prompt of an image that a chat describes. Raises `InvalidRequest`."""

    def plan(
        self, size: Size | None, aspect: float | None, resolution: int, reference: Size | None
    ) -> ImagePlan:
        """Return what the model makes of a requested size; see `ImageInput`.

        `reference` is the size of the image to edit. Raises `InvalidRequest`.
        """

    def fit_resolution(self, size: Size) -> int:
        """Return the resolution nearest to that of a requested size."""


class ImageModel(Protocol):
    """A loaded model that draws images."""

    def start(self, image_input: ImageInput) -> ImageInProgress:
        """Return an image before its first step.

        Raises:
            InvalidRequest: Such an image cannot be drawn.
        """

    def batch_key(self, image: ImageInProgress) -> Hashable:
        """Return a key; images with equal keys may share a step."""

    def advance(self, images: Sequence[ImageInProgress]) -> None:
        """Do one step of unfinished images with equal keys. They may be at different steps."""

    def progress(self, image: ImageInProgress) -> tuple[int, int]:
        """Return the number of steps done, and of all steps."""

    def preview(self, image: ImageInProgress) -> np.ndarray:
        """Return what an image between two steps will probably be, in the form of `finish`."""

    def finish(self, image: ImageInProgress) -> np.ndarray:
        """Return the pixels of an image after its last step, uint8 [height, width, 3]."""

    def sample_input(self) -> ImageInput:
        """Return a small input to warm up with."""
