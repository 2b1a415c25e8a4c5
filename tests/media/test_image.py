"""Pictures come out as the reference sees them, or not at all."""

import struct
import time

import numpy as np
import pytest
from PIL import Image

from sglang_omni.media import image
from sglang_omni.media.limits import MediaLimits
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.files import LIMITS, RULES, encoded, picture, png
from tests.testing.golden import cases, file_of, load_case


def rgb(data: bytes) -> np.ndarray:
    """The picture in its own size."""
    return np.asarray(image.read_rgb(data, LIMITS))


@pytest.mark.parametrize("case", cases("vision", "image_", required=False))
def test_resized_pictures_equal_the_reference(case: str) -> None:
    golden = load_case(case)
    data = file_of(golden.info["image_file"]).read_bytes()
    decoded = image.decode(data, LIMITS, RULES.image)
    np.testing.assert_array_equal(decoded, golden["resized_rgb"].numpy())
    assert decoded.dtype == np.uint8


@pytest.mark.parametrize("form", ["PNG", "WEBP", "BMP", "TIFF"])
def test_lossless_formats_keep_every_pixel(form: str) -> None:
    original = picture()
    options = {"lossless": True} if form == "WEBP" else {}
    np.testing.assert_array_equal(rgb(encoded(original, form, **options)), np.asarray(original))


def test_jpeg_is_read() -> None:
    plain = Image.new("RGB", (40, 30), (200, 100, 50))
    assert np.abs(rgb(encoded(plain, "JPEG", quality=95)).astype(int) - np.asarray(plain)).max() < 4


def test_an_animation_gives_its_first_frame() -> None:
    first, second = Image.new("RGB", (32, 32), "red"), Image.new("RGB", (32, 32), "blue")
    data = encoded(first, "GIF", save_all=True, append_images=[second])
    assert (rgb(data) == (255, 0, 0)).all()


def test_transparency_is_dropped_and_not_blended() -> None:
    original = picture("RGBA")
    original.putalpha(0)
    np.testing.assert_array_equal(rgb(encoded(original)), np.asarray(original)[..., :3])


def test_a_palette_with_transparency_keeps_its_colours() -> None:
    paletted = Image.new("P", (16, 16), 1)
    paletted.putpalette([0, 0, 0, 10, 200, 30])
    assert (rgb(encoded(paletted, transparency=1)) == (10, 200, 30)).all()


def test_grey_becomes_three_equal_channels() -> None:
    grey = picture("L")
    assert (rgb(encoded(grey)) == np.asarray(grey)[..., None]).all()


def test_sixteen_bits_are_scaled_and_not_clipped() -> None:
    ramp = np.arange(256, dtype=np.uint16).reshape(16, 16) * 257
    assert (rgb(encoded(Image.fromarray(ramp)))[..., 0] == ramp // 257).all()


def test_cmyk_is_converted() -> None:
    cyan = Image.new("CMYK", (32, 32), (255, 0, 0, 0))
    assert (rgb(encoded(cyan, "TIFF")) == (0, 255, 255)).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(orientation: int) -> None:
    # Stored so that a viewer who follows the tag sees red at the top left, green at the top right.
    upright = np.zeros((32, 64, 3), np.uint8)
    upright[:16, :32], upright[:16, 32:] = (255, 0, 0), (0, 255, 0)
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(Image.fromarray(np.ascontiguousarray(stored)), "PNG", exif=exif)
    np.testing.assert_array_equal(rgb(data), upright)


def test_a_tiff_is_not_turned_twice() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(Image.new("RGB", (64, 32)), "TIFF", exif=exif)
    assert rgb(data).shape == (64, 32, 3)


def test_a_bomb_is_refused_by_its_header() -> None:
    began = time.process_time()
    with pytest.raises(InvalidRequest, match="more than 100000000 pixels"):
        image.decode(png(50_000, 50_000, b""), LIMITS, RULES.image)
    assert time.process_time() - began < 0.5


def test_pixels_are_counted_up_to_the_limit() -> None:
    limits = MediaLimits(pixels=64 * 48)
    assert image.read_rgb(encoded(picture()), limits).size == (64, 48)
    with pytest.raises(InvalidRequest, match="more than 3071 pixels"):
        image.read_rgb(encoded(picture()), MediaLimits(pixels=64 * 48 - 1))


def test_a_strip_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(InvalidRequest, match="200 times as long"):
        image.decode(png(30_000, 10, b"no pixels"), LIMITS, RULES.image)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_half_a_file_is_no_picture(form: str) -> None:
    data = encoded(picture(size=(200, 200)), form)
    # Which exception says so is Pillow's choice; the worker makes one of ours of it.
    with pytest.raises((InvalidRequest, OSError, SyntaxError, ValueError)):
        rgb(data[: len(data) // 2])


@pytest.mark.parametrize(
    "data",
    [b"", b"not a picture", b"\x89PNG\r\n\x1a\n", b"<svg xmlns='http://www.w3.org/2000/svg'/>"],
)
def test_what_is_no_picture_is_called_so(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="is not an image in a supported format"):
        rgb(data)


def test_a_format_outside_the_list_is_refused() -> None:
    with pytest.raises(
        InvalidRequest, match=r"supported format \(PNG, JPEG, WEBP, GIF, BMP, TIFF\)"
    ):
        rgb(encoded(picture(), "PPM"))


def test_a_forged_gif_is_refused() -> None:
    data = bytearray(encoded(Image.new("RGB", (8, 8)), "GIF"))
    data[6:10] = struct.pack("<HH", 65_535, 65_535)
    with pytest.raises(InvalidRequest, match="more than 100000000 pixels"):
        rgb(bytes(data))
