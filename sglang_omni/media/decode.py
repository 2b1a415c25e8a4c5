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

    An image becomes uint8 [1, height, width, 3], within `budget` or else the rules' own; a video
    uint8 [frames, height, width, 3], an even number of frames, with the time of each pair; a clip
    float32 [samples], mono, at the rules' rate. Raises `InvalidRequest`, or whatever a decoder
    raises over a broken file.
    """
    match kind:
        case "image":
            return image.decode(files[0], limits, budget or rules.image)[None], ()
        case "audio":
            return audio.decode(files[0], limits, rules.sample_rate), ()
        case "video" if len(files) > 1:
            listed = video.decode_listed(files, limits, rules.video)
            return listed.frames, listed.seconds
        case "video":
            taken = video.decode(files[0], limits, rules.video)
            return taken.frames, taken.seconds
