"""Decode the files of a medium to the input of the model's encoders."""

from collections.abc import Sequence

import numpy as np

from sglang_omni.media import audio, image, video
from sglang_omni.media.limits import Kind, MediaLimits, MediaRules, PixelBudget

# The decoded array, and the times of a video's frame pairs in seconds.
Content = tuple[np.ndarray, tuple[float, ...]]


def decode_medium(
    kind: Kind,
    files: Sequence[bytes],
    limits: MediaLimits,
    rules: MediaRules,
    budget: PixelBudget | None = None,
) -> Content:
    """Decode one file, or several that are the frames of a video.

    Returns:
        For an image: uint8 [1, height, width, 3], within the rules and `budget`.
        For a video: uint8 [frames, height, width, 3] with an even number of frames, and the time
        of each pair.
        For audio: float32 [samples], mono, at the sample rate of the rules.

    Raises:
        InvalidRequest: The file exceeds the limits or is invalid. A decoder may raise other
            errors for a broken file.
    """
    match kind:
        case "image":
            return image.decode(files[0], limits, narrow_budget(rules.image, budget))[None], ()
        case "audio":
            return audio.decode(files[0], limits, rules.sample_rate), ()
        case "video" if len(files) > 1:
            frame_list = video.decode_frame_list(files, limits, rules.video)
            return frame_list.frames, frame_list.seconds
        case "video":
            sampled = video.decode(files[0], limits, rules.video)
            return sampled.frames, sampled.seconds


def narrow_budget(rules: PixelBudget, budget: PixelBudget | None) -> PixelBudget:
    """Return a request's budget, limited by the rules: a request may ask for less, not for more."""
    if budget is None:
        return rules
    return PixelBudget(
        rules.factor,
        min(rules.min_pixels, budget.min_pixels),
        min(rules.max_pixels, budget.max_pixels),
    )
