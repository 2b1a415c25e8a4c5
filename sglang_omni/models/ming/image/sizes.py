"""The sizes in which the model draws, and that of the image it returns. Pure functions.

The model draws one of the sizes ("buckets") of a resolution class. The result is stretched to the
aspect ratio of the request, so that it covers the bucket. All sizes are (height, width) in pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sglang_omni.protocol.errors import InvalidRequest

Size = tuple[int, int]

DEFAULT_RESOLUTION = 1024
# Between the smallest and the largest ratio of the tables. Beyond them the model draws its nearest
# size, but the stretched result would be thousands of pixels long.
MIN_RATIO, MAX_RATIO = 1 / 4, 4.0
LATENT_SIDE = 8
"""Pixels of one side of a latent."""

# Height and width by their ratio as printed in the released tables. The printed ratio decides, not
# the exact one.
_RATIOS_512: dict[float, Size] = {
    0.25: (256, 1024),
    0.26: (256, 992),
    0.27: (256, 960),
    0.28: (256, 928),
    0.32: (288, 896),
    0.33: (288, 864),
    0.35: (288, 832),
    0.4: (320, 800),
    0.42: (320, 768),
    0.48: (352, 736),
    0.5: (352, 704),
    0.52: (352, 672),
    0.57: (384, 672),
    0.6: (384, 640),
    0.68: (416, 608),
    0.72: (416, 576),
    0.78: (448, 576),
    0.82: (448, 544),
    0.88: (480, 544),
    0.94: (480, 512),
    1.0: (512, 512),
    1.07: (512, 480),
    1.13: (544, 480),
    1.21: (544, 448),
    1.29: (576, 448),
    1.38: (576, 416),
    1.46: (608, 416),
    1.67: (640, 384),
    1.75: (672, 384),
    2.0: (704, 352),
    2.09: (736, 352),
    2.4: (768, 320),
    2.5: (800, 320),
    2.89: (832, 288),
    3.0: (864, 288),
    3.11: (896, 288),
    3.62: (928, 256),
    3.75: (960, 256),
    3.88: (992, 256),
    4.0: (1024, 256),
}
_RATIOS_672: dict[float, Size] = {
    0.28: (352, 1280),
    0.32: (384, 1184),
    0.38: (416, 1088),
    0.44: (448, 1024),
    0.52: (480, 928),
    0.57: (512, 896),
    0.65: (544, 832),
    0.75: (576, 768),
    0.83: (608, 736),
    0.91: (640, 704),
    1.00: (672, 672),
    1.10: (704, 640),
    1.21: (736, 608),
    1.33: (768, 576),
    1.39: (800, 576),
    1.53: (832, 544),
    1.69: (864, 512),
    1.75: (896, 512),
    1.93: (928, 480),
    2.00: (960, 480),
    2.21: (992, 448),
    2.29: (1024, 448),
    2.54: (1056, 416),
    2.62: (1088, 416),
    2.69: (1120, 416),
    3.00: (1152, 384),
    3.08: (1184, 384),
    3.17: (1216, 384),
    3.55: (1248, 352),
    3.64: (1280, 352),
}
_RATIOS_1024 = {ratio: (2 * height, 2 * width) for ratio, (height, width) in _RATIOS_512.items()}
# Not a class of the released model. Small models draw it.
_RATIOS_256 = {ratio: (height // 2, width // 2) for ratio, (height, width) in _RATIOS_512.items()}
BUCKETS = {256: _RATIOS_256, 512: _RATIOS_512, 672: _RATIOS_672, 1024: _RATIOS_1024}
"""The sizes of each resolution class, by their printed ratio of height to width."""
RELEASED_RESOLUTIONS = (512, 672, 1024)
"""The classes of the released model, and of every checkpoint that names none."""


@dataclass(frozen=True)
class SizePlan:
    """What was asked for, what the model draws, and what is returned."""

    requested: Size
    bucket: Size
    output: Size

    @property
    def latent(self) -> Size:
        """Return height and width of the latents."""
        height, width = self.bucket
        return height // LATENT_SIDE, width // LATENT_SIDE


def select_resolution(resolution: int, known: Sequence[int] = RELEASED_RESOLUTIONS) -> int:
    """Return the one of the `known` classes nearest to `resolution`, the first for a tie."""
    return min(known, key=lambda one: abs(one - resolution))


def select_bucket(size: Size, resolution: int, known: Sequence[int] = RELEASED_RESOLUTIONS) -> Size:
    """Return the size of the class whose printed ratio is nearest to the ratio of `size`."""
    ratios = BUCKETS[select_resolution(resolution, known)]
    height, width = size
    return ratios[min(ratios, key=lambda ratio: abs(ratio - height / width))]


def compute_output_size(size: Size, bucket: Size) -> Size:
    """Return the size with the ratio of `size` that covers `bucket`."""
    (height, width), (bucket_height, bucket_width) = size, bucket
    if bucket_height / height > bucket_width / width:
        return bucket_height, int(width * bucket_height / height)
    return int(height * bucket_width / width), bucket_width


def compute_default_size(aspect: float) -> Size:
    """Return the size that is requested by an aspect ratio (width / height) alone."""
    return select_bucket((512, int(512 * aspect)), 512)


def crop_to_aspect(size: Size, aspect: float) -> Size:
    """Return the size of the largest crop with an aspect ratio (width / height)."""
    height, width = size
    if width / height > aspect:
        return height, int(height * aspect)
    return int(width / aspect), width


def plan_sizes(
    size: Size, resolution: int, known: Sequence[int] = RELEASED_RESOLUTIONS
) -> SizePlan:
    """Return the plan for a requested size; `known` are the classes that the model draws.

    Raises:
        InvalidRequest: The ratio of height to width is too small or too large.
    """
    height, width = size
    if height < 1 or width < 1 or not MIN_RATIO <= height / width <= MAX_RATIO:
        raise InvalidRequest(
            f"an image of {width}x{height} pixels is too narrow; the longer side may have at most "
            f"{MAX_RATIO:g} times the length of the other",
            param="size",
        )
    bucket = select_bucket(size, resolution, known)
    return SizePlan(size, bucket, compute_output_size(size, bucket))


def plan_image(
    size: Size | None,
    aspect: float | None,
    resolution: int,
    reference: Size | None,
    known: Sequence[int] = RELEASED_RESOLUTIONS,
) -> SizePlan:
    """Return the plan for an image. An edited one keeps its own ratio, unless another is asked for.

    Args:
        size: The requested size, which counts only without a reference.
        aspect: The requested ratio of width to height.
        resolution: The side of a square image of the requested resolution class.
        reference: The size of the image to edit.
        known: The resolution classes that the model draws.

    Raises:
        InvalidRequest: The image would be too narrow, or the aspect ratio is none.
    """
    # The nearest size of the model would be drawn, which is not what was asked for.
    if aspect is not None and not MIN_RATIO <= aspect <= MAX_RATIO:
        raise InvalidRequest(
            f"an aspect ratio must be between {MIN_RATIO:g} and {MAX_RATIO:g}",
            param="aspect_ratio",
        )
    if reference is not None:
        # Cropping decides the size only: the whole reference image is stretched to it.
        size = reference if aspect is None else crop_to_aspect(reference, aspect)
    return plan_sizes(size or compute_default_size(aspect or 1.0), resolution, known)
