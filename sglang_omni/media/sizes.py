"""The model's rules for sizes, frame indices and times of images and videos."""

import math

import numpy as np

from sglang_omni.media.limits import PixelBudget, VideoRules
from sglang_omni.protocol.errors import InvalidRequest

MAX_ASPECT = 200
# The upper bound of a frame's area is at least this multiple of its minimum, for any frame count.
MIN_AREA_MARGIN = 1.05
# Frames beyond this number in a list of frames do not reduce the frame size further.
LISTED_BUDGET = 256
LISTED_FPS = 2.0


def smart_resize(height: int, width: int, budget: PixelBudget) -> tuple[int, int]:
    """Return the (height, width) to resize an image to: close to its own, within the budget.

    Raises `InvalidRequest` for an image without area, or with an aspect ratio above 200.
    """
    return _fit(height, width, budget.factor, budget.min_pixels, budget.max_pixels)


def frame_size(height: int, width: int, frames: int, rules: VideoRules) -> tuple[int, int]:
    """Return the (height, width) of each of `frames` frames. Raises as `smart_resize` does."""
    max_pixels = max(rules.total_pixels / frames * 2, int(rules.min_pixels * MIN_AREA_MARGIN))
    max_pixels = min(max_pixels, rules.max_frame_pixels)
    return _fit(height, width, rules.factor, rules.min_pixels, max_pixels)


def _fit(
    height: int, width: int, factor: int, min_pixels: int, max_pixels: float
) -> tuple[int, int]:
    if min(height, width) < 1:
        raise InvalidRequest(f"a picture of {width}x{height} pixels has no area")
    if max(height, width) / min(height, width) > MAX_ASPECT:
        raise InvalidRequest(
            f"a picture of {width}x{height} pixels is more than {MAX_ASPECT} times as long as wide"
        )
    rows = max(factor, round(height / factor) * factor)
    columns = max(factor, round(width / factor) * factor)
    if rows * columns > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        return _round_down(height / shrink, factor), _round_down(width / shrink, factor)
    if rows * columns < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        return _round_up(height * grow, factor), _round_up(width * grow, factor)
    return rows, columns


def _round_down(side: float, factor: int) -> int:
    return max(factor, math.floor(side / factor) * factor)


def _round_up(side: float, factor: int) -> int:
    return math.ceil(side / factor) * factor


def sample_frames(frames: int, fps: float, rules: VideoRules) -> tuple[tuple[int, ...], float]:
    """Return the indices of the sampled frames, ascending, and their rate in frames per second.

    `fps` is the video's own frame rate. The indices are spread evenly from the first to the last.
    """
    target = int(frames / fps * min(rules.fps, fps) + 0.5)
    count = max(1, min(rules.frames, target))
    indices = np.linspace(0, frames - 1, count, dtype=int)
    return tuple(indices.tolist()), count / frames * fps


def listed_budget(frames: int) -> int:
    """Return the number of frames of a list that determines their size. All frames are kept.

    Raises `InvalidRequest` for fewer than two frames, for which the rule is not defined.
    """
    if frames < 2:
        raise InvalidRequest("a video given as a list of frames needs at least two frames")
    return min(LISTED_BUDGET, frames) // 2 * 2


def pair_seconds(frames: int, fps: float) -> tuple[float, ...]:
    """Return the time of each pair of frames in seconds, the mean of its two times.

    `fps` is the rate of the sampled frames. With an odd count the last frame is paired with itself.
    """
    times = [index / fps for index in range(frames)]
    times += times[-1:] * (frames % 2)
    return tuple((a + b) / 2 for a, b in zip(times[::2], times[1::2], strict=True))
