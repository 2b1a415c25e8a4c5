"""Decode the files of a medium to the input of the model's encoders."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sglang_omni.media import audio, image, video
from sglang_omni.media.limits import (
    NO_VIDEO_OPTIONS,
    Kind,
    MediaLimits,
    MediaRules,
    PixelBudget,
    VideoOptions,
    VideoRules,
)
from sglang_omni.media.sizes import LISTED_FPS
from sglang_omni.protocol.errors import InvalidRequest

# The decoded array, and the times of a video's frame pairs in seconds.
Content = tuple[np.ndarray, tuple[float, ...]]


def decode_medium(
    kind: Kind,
    files: Sequence[bytes],
    limits: MediaLimits,
    rules: MediaRules,
    budget: PixelBudget | None = None,
    options: VideoOptions = NO_VIDEO_OPTIONS,
) -> Content:
    """Decode one file, or several that are the frames of a video.

    With a `sound` in `options`, the audio is that of a video file.

    Returns:
        For an image: uint8 [1, height, width, 3], within the rules and `budget`.
        For a video: uint8 [frames, height, width, 3] with an even number of frames, and the time
        of each pair.
        For audio: float32 [samples], mono, at the sample rate of the rules; no samples for a video
        without sound.

    Raises:
        InvalidRequest: The file exceeds the limits or is invalid, or `options` ask for more than
            the rules allow. A decoder may raise other errors for a broken file.
    """
    match kind:
        case "image":
            return image.decode(files[0], limits, narrow_budget(rules.image, budget))[None], ()
        case "audio" if options.sound != "off":
            return audio.decode_video_sound(files[0], limits, rules.sample_rate), ()
        case "audio":
            return audio.decode(files[0], limits, rules.sample_rate), ()
        case "video" if len(files) > 1:
            listed_fps = LISTED_FPS if options.fps is None else options.fps
            frame_list = video.decode_frame_list(files, limits, rules.video, listed_fps)
            return frame_list.frames, frame_list.seconds
        case "video":
            sampled = video.decode(files[0], limits, narrow_video_rules(rules.video, options))
            return sampled.frames, sampled.seconds


def narrow_budget(rules: PixelBudget, budget: PixelBudget | None) -> PixelBudget:
    """Return a request's budget, limited by the rules: a request may ask for less, not for more.

    A budget of another factor is for an image that no encoder takes, so the rules do not apply.
    """
    if budget is None:
        return rules
    if budget.factor != rules.factor:
        return budget
    return PixelBudget(
        rules.factor,
        min(rules.min_pixels, budget.min_pixels),
        min(rules.max_pixels, budget.max_pixels),
    )


def narrow_video_rules(rules: VideoRules, options: VideoOptions) -> VideoRules:
    """Return the rules with a request's options. Raises `InvalidRequest` for a rate too high."""
    fps = rules.fps if options.fps is None else options.fps
    if fps > rules.max_fps:
        raise InvalidRequest(
            f"{fps:g} frames a second are too many; this server samples at most {rules.max_fps:g}"
        )
    frames = rules.frames if options.max_frames is None else min(rules.frames, options.max_frames)
    return replace(rules, fps=fps, frames=frames)
