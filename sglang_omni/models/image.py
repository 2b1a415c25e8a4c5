"""What the image engine needs of a model that draws: images in the making, and batched steps.

The engine owns which images take part in a step; an image in the making belongs to its family.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

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
    """

    states: np.ndarray
    prompt: str
    size: tuple[int, int] | None
    aspect: float | None
    resolution: int
    steps: int
    guidance: float
    seed: int
    reference: np.ndarray | None = None


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

    def finish(self, image: ImageInProgress) -> np.ndarray:
        """Return the pixels of an image after its last step, uint8 [height, width, 3]."""

    def sample_input(self) -> ImageInput:
        """Return a small input to warm up with."""
