"""A question about a picture with its answers, and the shapes that a question can identify."""

from dataclasses import dataclass
from random import Random

from cookbook.ming_mini.thinker.items import Check
from cookbook.ming_mini.thinker.scenes import DrawnShape, Scene


@dataclass(frozen=True)
class PictureQuestion:
    """A question about a scene with its right and some wrong answers, without full stops.

    `reason` goes before the right answer where answers give their reasons.
    """

    task: str
    question: str
    right: str
    wrong: tuple[str, ...]
    check: Check = "exact"
    reason: str = ""


def find_shapes(
    scene: Scene, shape: str | None = None, colour: str | None = None
) -> list[DrawnShape]:
    """Return the shapes of one kind, of one colour, or of both."""
    return [
        one for one in scene.shapes if shape in (None, one.shape) and colour in (None, one.colour)
    ]


def pick_unique_shape(scene: Scene, rng: Random) -> DrawnShape | None:
    """Pick a shape whose kind and colour together are unique."""
    alone = [one for one in scene.shapes if len(find_shapes(scene, one.shape, one.colour)) == 1]
    return rng.choice(alone) if alone else None


def yes_no_question(question: str, true: bool, reason: str = "") -> PictureQuestion:
    """Build a question whose answer is yes or no."""
    answer = "yes" if true else "no"
    return PictureQuestion("picture_yes_no", question, answer, (), reason=reason)
