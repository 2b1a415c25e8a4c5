"""How far two drawings of one image may be apart, by the type that they were computed in.

Sums in another order (another batch, another kernel) differ by unit roundoffs of the type. The
transformer's blocks, the guided steps and the VAE let them grow, and a value at the border of two
levels of 8 bits is rounded to either. So a pixel may differ by `rounding` levels, and by the
growth times the unit roundoff of the range of 255 levels. For float32 the second part is nothing.
The growths are from drawings of the tiny checkpoint on a card, where the largest difference in
bfloat16 was 14 levels.
"""

from dataclasses import dataclass

import numpy as np

LEVELS = 255
UNIT_ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8}
MAX_GROWTH, MEAN_GROWTH = 24, 3


@dataclass(frozen=True)
class PixelTolerance:
    """The largest difference of any value, and of all on average, in levels."""

    max_levels: float
    mean_levels: float

    def accepts(self, difference: np.ndarray) -> bool:
        """Whether two images that differ so are one."""
        size = np.abs(difference)
        return bool(size.max() <= self.max_levels and size.mean() <= self.mean_levels)


def get_pixel_tolerance(
    dtype: str, rounding: int = 1, mean_rounding: float = 0.05
) -> PixelTolerance:
    """The tolerance of images that were computed in `dtype`."""
    unit = LEVELS * UNIT_ROUNDOFF[dtype]
    return PixelTolerance(
        # A whole level is the smallest difference, so float32 stays at its rounding alone.
        int(rounding + MAX_GROWTH * unit),
        mean_rounding + MEAN_GROWTH * unit,
    )
