"""Files of a medium to what the model's encoders take. One way for every kind and every caller."""

from collections.abc import Sequence

import numpy as np

from sglang_omni.media import audio, image, video
from sglang_omni.media.limits import Kind, MediaLimits, MediaRules, PixelBudget

# A medium's array, and the times of a video's frame pairs in seconds.
Content = tuple[np.ndarray, tuple[float, ...]]


def decode_medium(
    kind: Kind,
    files: Sequence[bytes],
    limits: MediaLimits,
    rules: MediaRules,
    budget: PixelBudget | None = None,
) -> Content:
    """Decode one file, or several that are the frames of a video.

    An image becomes uint8 [1, height, width, 3], within the rules and `budget`; a video
    uint8 [frames, height, width, 3], an even number of frames, with the time of each pair; a clip
    float32 [samples], mono, at the rules' rate. Raises `InvalidRequest`, or whatever a decoder
    raises over a broken file.
    """
    match kind:
        case "image":
            return image.decode(files[0], limits, narrowed(rules.image, budget))[None], ()
        case "audio":
            return audio.decode(files[0], limits, rules.sample_rate), ()
        case "video" if len(files) > 1:
            listed = video.decode_listed(files, limits, rules.video)
            return listed.frames, listed.seconds
        case "video":
            taken = video.decode(files[0], limits, rules.video)
            return taken.frames, taken.seconds


def narrowed(rules: PixelBudget, budget: PixelBudget | None) -> PixelBudget:
    """What a request may ask for: less than the rules allow, never more."""
    if budget is None:
        return rules
    least, most = min(rules.least, budget.least), min(rules.most, budget.most)
    return PixelBudget(rules.factor, least, most)
