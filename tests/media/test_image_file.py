"""Files of drawn images can be read by others, and say that a model made them."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from sglang_omni.media.image_file import (
    GENERATED_SOURCE,
    ImageFileType,
    encode_image,
    get_image_media_type,
)

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
PIXELS = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)


def read(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("file_type", ["png", "jpeg", "webp"])
def test_a_file_says_that_it_was_generated(file_type: ImageFileType) -> None:
    image = read(encode_image(PIXELS, file_type, 90, "sglang-omni 1"))
    assert image.size == (40, 24)
    assert image.format == file_type.upper()
    xmp = image.info.get("xmp") or image.info["XML:com.adobe.xmp"].encode()
    assert GENERATED_SOURCE.encode() in xmp
    (description,) = ElementTree.fromstring(xmp).iter(f"{RDF}Description")
    assert description.attrib["{http://ns.adobe.com/xap/1.0/}CreatorTool"] == "sglang-omni 1"
    software = image.info.get("Software") or image.getexif()[0x0131]
    assert software == "sglang-omni 1"


def test_a_png_loses_nothing() -> None:
    assert np.array_equal(np.asarray(read(encode_image(PIXELS, "png", 1, "x"))), PIXELS)


@pytest.mark.parametrize("file_type", ["jpeg", "webp"])
def test_a_lower_quality_makes_a_smaller_file(file_type: ImageFileType) -> None:
    sizes = [len(encode_image(PIXELS, file_type, quality, "x")) for quality in (0, 50, 100)]
    assert sizes == sorted(set(sizes))


def test_rows_that_are_not_adjacent_are_encoded_too() -> None:
    assert np.array_equal(
        np.asarray(read(encode_image(PIXELS[:, ::2], "png", 100, "x"))), PIXELS[:, ::2]
    )
    assert get_image_media_type("jpeg") == "image/jpeg"
