"""PNG files hold exactly the pixels, whatever the number of strips."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from sglang_omni.media.png import encode_png, filter_rows


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def gradient(height: int, width: int) -> np.ndarray:
    rows, columns = np.mgrid[:height, :width]
    return np.stack((rows, columns, rows + columns), axis=2).astype(np.uint8)


@pytest.mark.parametrize("workers", [1, 3, None])
@pytest.mark.parametrize("draw", [noise, gradient])
@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (257, 640)])
def test_a_reader_gets_the_pixels(
    draw: Callable[[int, int], np.ndarray],
    size: tuple[int, int],
    workers: int | None,
) -> None:
    pixels = draw(*size)
    image = Image.open(io.BytesIO(encode_png(pixels, workers=workers)))
    assert image.mode == "RGB"
    assert np.array_equal(np.array(image), pixels)


def test_smooth_images_become_small() -> None:
    pixels = gradient(512, 512)
    assert len(encode_png(pixels, workers=8)) < pixels.nbytes / 20


def test_each_row_has_the_better_filter() -> None:
    pixels = np.zeros((3, 4, 3), np.uint8)
    pixels[1:] = np.arange(12, dtype=np.uint8).reshape(4, 3) * 20
    filters = filter_rows(pixels)[:, 0].tolist()
    assert filters == [1, 1, 2], "a row like the one above it is stored as zeros"


@pytest.mark.parametrize(
    "pixels", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)]
)
def test_other_arrays_are_refused(pixels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected uint8"):
        encode_png(pixels)
