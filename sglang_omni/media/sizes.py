"""Sizes, frame numbers and times: the model's rules for pictures and videos, as arithmetic."""

import math

import numpy as np

from sglang_omni.media.limits import PixelBudget, VideoRules
from sglang_omni.protocol.errors import InvalidRequest

MAX_ASPECT = 200
# A video's frames may have this much more than the least area, however many they are.
LEAST_ROOM = 1.05
# Frames of a list beyond these do not shrink the frames any further.
LISTED_BUDGET = 256
LISTED_FPS = 2.0


def smart_resize(height: int, width: int, budget: PixelBudget) -> tuple[int, int]:
    """The (height, width) in pixels that a picture gets: near its own, within the budget.

    Raises `InvalidRequest` for a picture without area, or one more than 200 times as long as wide.
    """
    return _fit(height, width, budget.factor, budget.least, budget.most)


def frame_size(height: int, width: int, frames: int, rules: VideoRules) -> tuple[int, int]:
    """The (height, width) in pixels of each of `frames` frames. Raises as `smart_resize` does."""
    most = max(rules.total / frames * 2, int(rules.least * LEAST_ROOM))
    return _fit(height, width, rules.factor, rules.least, min(most, rules.max_frame_pixels))


def _fit(height: int, width: int, factor: int, least: int, most: float) -> tuple[int, int]:
    if min(height, width) < 1:
        raise InvalidRequest(f"a picture of {width}x{height} pixels has no area")
    if max(height, width) / min(height, width) > MAX_ASPECT:
        raise InvalidRequest(
            f"a picture of {width}x{height} pixels is more than {MAX_ASPECT} times as long as wide"
        )
    rows = max(factor, round(height / factor) * factor)
    columns = max(factor, round(width / factor) * factor)
    if rows * columns > most:
        shrink = math.sqrt(height * width / most)
        return _down(height / shrink, factor), _down(width / shrink, factor)
    if rows * columns < least:
        grow = math.sqrt(least / (height * width))
        return _up(height * grow, factor), _up(width * grow, factor)
    return rows, columns


def _down(side: float, factor: int) -> int:
    return max(factor, math.floor(side / factor) * factor)


def _up(side: float, factor: int) -> int:
    return math.ceil(side / factor) * factor


def sample_frames(frames: int, fps: float, rules: VideoRules) -> tuple[tuple[int, ...], float]:
    """Which of a video's frames are taken, ascending, and how many a second of it that makes.

    `fps` is the video's own rate in Hz; the frames are spread evenly from the first to the last.
    """
    wanted = int(frames / fps * min(rules.fps, fps) + 0.5)
    count = max(1, min(rules.frames, wanted))
    indices = np.linspace(0, frames - 1, count, dtype=int)
    return tuple(indices.tolist()), count / frames * fps


def listed_budget(frames: int) -> int:
    """By how many frames the area of a list's frames is counted; the list itself stays whole.

    Raises `InvalidRequest` for less than two frames, for which the rule gives nothing.
    """
    if frames < 2:
        raise InvalidRequest("a video given as a list of frames needs at least two")
    return min(LISTED_BUDGET, frames) // 2 * 2


def pair_seconds(frames: int, fps: float) -> tuple[float, ...]:
    """The time of each pair of frames in seconds, the mean of its two.

    `fps` is the rate of the frames taken. Of an odd count the last frame is its own partner.
    """
    times = [index / fps for index in range(frames)]
    times += times[-1:] * (frames % 2)
    return tuple((a + b) / 2 for a, b in zip(times[::2], times[1::2], strict=True))
