"""How a model takes images, videos and audio: sizes, and tokens per medium."""

from collections.abc import Callable
from dataclasses import dataclass

from sglang_omni.media.limits import MediaRules

Grid = tuple[int, int, int]
"""Patches of a picture or video: (time, rows, columns)."""


@dataclass(frozen=True)
class MediaFormat:
    """The media format of one family.

    Attributes:
        rules: Pixel budgets, frame sampling and sample rate that media are brought to.
        patch_grid: Patches of frames `[frames, height, width, 3]`, given their shape.
        image_tokens: Tokens of one step of time of a grid.
        audio_tokens: Tokens of a clip, given its number of samples at `rules.sample_rate`.
    """

    rules: MediaRules
    patch_grid: Callable[[tuple[int, ...]], Grid]
    image_tokens: Callable[[Grid], int]
    audio_tokens: Callable[[int], int]
