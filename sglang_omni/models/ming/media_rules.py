"""How Ming takes its media in: the released processor's constants, and what a medium costs.

A picture is cut into patches of 16 x 16 pixels, 2 x 2 patches make a token, and two frames of a
video share their tokens. A clip has a mel frame every 10 ms and a token for about four of them.
"""

from sglang_omni.media.limits import MediaRules, PixelBudget, VideoRules
from sglang_omni.models.media_format import Grid, MediaFormat

PATCH = 16
MERGE = 2
FRAMES_PER_PATCH = 2
SAMPLE_RATE = 16_000
MEL_HOP = 160

RULES = MediaRules(
    image=PixelBudget(factor=PATCH * MERGE, min_pixels=4_096, max_pixels=16_777_216),
    video=VideoRules(
        fps=2.0,
        frames=170,
        factor=PATCH * MERGE,
        min_pixels=128 * 1024,
        total_pixels=96 * 128 * 1024,
    ),
    sample_rate=SAMPLE_RATE,
)


def patch_grid(shape: tuple[int, ...]) -> Grid:
    """Patches (time, rows, columns) of frames [frames, height, width, 3].

    One frame is an image; an image is one step of time, as two frames are.
    """
    frames, height, width, _ = shape
    return (-(-frames // FRAMES_PER_PATCH), height // PATCH, width // PATCH)


def picture_tokens(grid: Grid) -> int:
    """Tokens of one step of time of a picture."""
    _, rows, columns = grid
    return rows * columns // MERGE**2


def clip_tokens(samples: int) -> int:
    """Tokens of a clip of 16 kHz samples: mel frames, halved (rounding up) by two convolutions."""
    frames = samples // MEL_HOP
    for _ in range(2):
        frames = (frames - 1) // 2 + 1
    return frames


FORMAT = MediaFormat(RULES, patch_grid, picture_tokens, clip_tokens)
