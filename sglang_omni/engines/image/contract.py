"""Settings, requests and outputs of the image engine. Plain data; no torch."""

from dataclasses import dataclass
from pathlib import Path

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.runtime.shared_count import SharedCount


@dataclass(frozen=True)
class ImageSettings:
    """Settings of an image engine.

    Attributes:
        checkpoint: The model folder, with the image folders.
        max_images: The maximum number of images in the making; others wait.
        max_batch_size: The maximum number of images in one step.
        threads: CPU threads of PyTorch; None keeps its default.
        waiting: The answers that wait for their first output on the same device; None if there are
            none, so that images never rest.
        rest: How long images then rest after a step, in parts of it.

    `backend` and `fp8` are those of `ModelFamily.load_image_model`.
    """

    checkpoint: Path
    device: str = "cpu"
    dtype: str = "float32"
    backend: str = "auto"
    fp8: bool = False
    max_images: int = 16
    max_batch_size: int = 4
    threads: int | None = None
    waiting: SharedCount | None = None
    rest: float = 1.0


@dataclass(frozen=True)
class DrawRequest:
    """Draw one image, and write it as uint8 [height, width, 3] to `pixels`.

    `states` are the thinker's states at the query tokens, in `states_layout`; `negative_states` are
    those of a negative prompt, in `negative_layout`. `reference` is the image to edit, uint8
    [height, width, 3] in `reference_layout`. `previews` take the image as it will probably be, at
    as many steps, evenly spaced. The other fields are those of `ImageInput`.
    """

    states: SharedArray
    states_layout: Layout
    prompt: str
    pixels: SharedArray
    seed: int
    size: tuple[int, int] | None = None
    aspect: float | None = None
    resolution: int = 1024
    steps: int = 30
    guidance: float = 2.0
    negative_states: SharedArray | None = None
    negative_layout: Layout | None = None
    reference: SharedArray | None = None
    reference_layout: Layout | None = None
    previews: tuple[SharedArray, ...] = ()

    def find_preview(self, step: int, num_steps: int) -> int | None:
        """Return the index of the preview that is due after `step` steps, or None.

        Of an image with few steps, some previews are never due.
        """
        parts = len(self.previews) + 1
        due = (index * num_steps // parts for index in range(1, parts))
        found = [index for index, at in enumerate(due) if at == step]
        return found[-1] if found and step < num_steps else None


@dataclass(frozen=True)
class DrawProgress:
    """How many of its steps an image has done.

    `preview` is the index in the request's `previews` of one that is written, and its layout.
    """

    step: int
    num_steps: int
    preview: tuple[int, Layout] | None = None
    last: bool = False


@dataclass(frozen=True)
class DrawnImage:
    """The image is in the request's `pixels`, in this layout."""

    layout: Layout
    last: bool = True


@dataclass(frozen=True)
class ImageEngineInfo:
    """What a loaded image engine reports."""

    max_images: int
    max_batch_size: int
    dtype: str
