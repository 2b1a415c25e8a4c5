"""Short films, drawn: shapes that move, change their colour, appear or stay where they are."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cookbook.ming_mini.thinker.scenes import Scene
from sglang_omni.media.limits import VideoRules
from sglang_omni.media.sizes import LISTED_FPS, frame_size, pair_seconds
from sglang_omni.models.ming.media_rules import MERGE, PATCH, RULES

FACTOR = PATCH * MERGE


@dataclass(frozen=True)
class Film:
    """Frames of `size` (height, width), one scene each; an odd last frame is seen twice.

    The size is one that the server does not change. `fps` is the rate of the frames.
    """

    scenes: tuple[Scene, ...]
    fps: float = LISTED_FPS

    @property
    def size(self) -> tuple[int, int]:
        """Return the height and width in pixels."""
        return self.scenes[0].size

    @cached_property
    def key(self) -> str:
        """Return the content as text: what is where in the first frame and in the last."""
        ends = (self.scenes[0], self.scenes[-1])
        return f"film {len(self.scenes)} " + " then ".join(scene.key for scene in ends)

    @property
    def seconds(self) -> tuple[float, ...]:
        """Return the time of each pair of frames, as the server computes it."""
        return pair_seconds(len(self.scenes), self.fps)

    @property
    def pair_tokens(self) -> int:
        """Return the tokens of one pair of frames."""
        return self.size[0] * self.size[1] // FACTOR**2

    def draw(self) -> np.ndarray:
        """Draw the frames as uint8 [frames, height, width, 3], an even number of them."""
        frames = [scene.draw() for scene in self.scenes]
        return np.stack([*frames, *frames[-1:] * (len(frames) % 2)])


def film_sizes(rules: VideoRules = RULES.video) -> tuple[tuple[int, int], ...]:
    """Return sizes for films: what the server makes of small pictures of usual proportions."""
    usual = ((128, 128), (240, 320), (320, 240), (180, 320))
    return tuple(frame_size(height, width, 8, rules) for height, width in usual)


def still(scene: Scene, frames: int) -> Film:
    """Return a film in which nothing happens."""
    return Film((scene,) * frames)


def moving(scene: Scene, steps: tuple[tuple[float, float], ...], which: int) -> Film:
    """Return a film of a scene in which shape `which` moves by `steps` (y, x) in pixels."""
    return Film(tuple(_moved(scene, which, step) for step in steps))


def _moved(scene: Scene, which: int, step: tuple[float, float]) -> Scene:
    shapes = list(scene.shapes)
    one = shapes[which]
    shift = (one.shift[0] + round(step[0]), one.shift[1] + round(step[1]))
    shapes[which] = replace(one, shift=shift)
    return replace(scene, shapes=tuple(shapes))
