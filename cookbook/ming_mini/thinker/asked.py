"""A question about a picture with its answers, and which of the drawn shapes it can name."""

from dataclasses import dataclass
from random import Random

from cookbook.ming_mini.thinker.items import Check
from cookbook.ming_mini.thinker.scenes import Drawn, Scene


@dataclass(frozen=True)
class Asked:
    """A question about a scene with its right and some wrong answers, without full stops."""

    task: str
    question: str
    right: str
    wrong: tuple[str, ...]
    check: Check = "exact"


def of(scene: Scene, shape: str | None = None, colour: str | None = None) -> list[Drawn]:
    """The shapes of one kind, of one colour, or of both."""
    return [
        one for one in scene.shapes if shape in (None, one.shape) and colour in (None, one.colour)
    ]


def unique(scene: Scene, rng: Random) -> Drawn | None:
    """A shape that no other has both kind and colour in common with."""
    alone = [one for one in scene.shapes if len(of(scene, one.shape, one.colour)) == 1]
    return rng.choice(alone) if alone else None


def yes_no(question: str, true: bool) -> Asked:
    """A question that is answered by yes or no."""
    return Asked("picture_yes_no", question, "yes" if true else "no", ())
