"""What a request is, and how many floating-point operations its transformer must do."""

from dataclasses import dataclass

import numpy as np

from benchmarks.images.shapes import ImageShapes
from sglang_omni.models.image import ImageInput

PATCH_PIXELS = 16
"""Pixels per image token, in each direction."""
GUIDANCE = 2.0


@dataclass(frozen=True)
class Case:
    """One kind of request.

    Attributes:
        name: Its name in the result.
        side: Side of the square image in pixels.
        steps: Steps asked for; the last has no effect and is left out.
        batch: The number of such requests drawn together.
        glyphs: Whether the prompt quotes text, which doubles the condition rows.
        edit: Whether there is a reference image of the same size.
    """

    name: str
    side: int
    steps: int
    batch: int = 1
    glyphs: bool = False
    edit: bool = False


def list_cases(steps: int, sides: tuple[int, int]) -> list[Case]:
    """Return the cases; `sides` are those of large and small images."""
    large, small = sides
    return [
        Case("large", large, steps),
        Case("large, quoted text", large, steps, glyphs=True),
        Case("small", small, steps),
        Case("edit", large, steps, edit=True),
        Case("two large", large, steps, batch=2),
        Case("four large", large, steps, batch=4),
    ]


def build_input(shapes: ImageShapes, case: Case, seed: int) -> ImageInput:
    """Return a request with random states, and a random reference image where the case has one."""
    generator = np.random.default_rng(seed)
    states = generator.standard_normal(
        (shapes.head.num_queries, shapes.thinker_width), dtype=np.float32
    )
    reference = None
    if case.edit:
        tile = generator.integers(0, 256, (case.side // 16, case.side // 16, 3), dtype=np.uint8)
        reference = tile.repeat(16, axis=0).repeat(16, axis=1)
    prompt = 'a sign that says "open"' if case.glyphs else "a cat on a mat"
    size = None if case.edit else (case.side, case.side)
    return ImageInput(states, prompt, size, None, case.side, case.steps, GUIDANCE, seed, reference)


@dataclass(frozen=True)
class Operations:
    """Floating-point operations of one request's evaluations.

    `full` counts every branch in full, as diffusers' class computes it; `useful` leaves out what is
    computed once for both branches or once per image, and positions that become no pixels.
    """

    full: float
    useful: float


def count_operations(shapes: ImageShapes, case: Case) -> Operations:
    """Count the products of the blocks of a guided image."""
    config = shapes.transformer
    dim, refiners, layers = config["dim"], config["n_refiner_layers"], config["n_layers"]
    per_token = 2 * (4 * dim**2 + 3 * dim * int(dim / 3 * 8))
    kept = (case.side // PATCH_PIXELS) ** 2
    image = kept * (2 if case.edit else 1)
    caption = shapes.head.num_queries + (shapes.glyphs.max_length if case.glyphs else 0)
    caption += -caption % 32
    total = image + caption

    def block(tokens: int, queries: int | None = None) -> float:
        queries = tokens if queries is None else queries
        return per_token * queries + 4 * dim * queries * tokens

    # The last block needs keys and values of every token.
    last = block(total, kept) + 2 * 2 * dim**2 * (total - kept)
    refined = refiners * block(image)
    full = 2 * (refined + refiners * block(caption) + layers * block(total))
    useful = refined + 2 * ((layers - 1) * block(total) + last)
    evaluations = max(1, case.steps - 1)
    return Operations(
        case.batch * evaluations * full,
        case.batch * (evaluations * useful + 2 * refiners * block(caption)),
    )
