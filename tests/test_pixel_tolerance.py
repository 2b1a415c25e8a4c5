"""Tolerances of images follow the type that they were computed in."""

import numpy as np

from tests.testing.pixel_tolerance import PixelTolerance, get_pixel_tolerance


def difference(largest: int, count: int = 1) -> np.ndarray:
    """The difference of two images that are apart by `largest` in `count` of 10,000 values."""
    values = np.zeros(10_000, int)
    values[:count] = largest
    return values.reshape(100, 100)


def test_float32_may_differ_by_its_rounding_alone() -> None:
    tolerance = get_pixel_tolerance("float32")
    assert tolerance.max_levels == 1
    assert tolerance.mean_levels < 0.0501
    assert tolerance.accepts(difference(-1, 500))
    assert not tolerance.accepts(difference(2))
    assert not tolerance.accepts(difference(1, 600))
    assert get_pixel_tolerance("float32", rounding=2).accepts(difference(2))


def test_bfloat16_may_differ_by_what_its_roundoff_grows_to() -> None:
    tolerance = get_pixel_tolerance("bfloat16")
    assert tolerance == PixelTolerance(24, tolerance.mean_levels)
    assert 3 < tolerance.mean_levels < 3.1
    # What was seen on a card.
    assert tolerance.accepts(difference(14, 500))
    assert not tolerance.accepts(difference(25))
    assert not tolerance.accepts(difference(4, 10_000))
