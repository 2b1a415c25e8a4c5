"""Decode the bytes of an image to RGB pixels, with Pillow."""

import io

import numpy as np
from PIL import Image, UnidentifiedImageError

from sglang_omni.media.limits import MediaLimits, PixelBudget
from sglang_omni.media.sizes import smart_resize
from sglang_omni.protocol.errors import InvalidRequest

# The formats of browsers and cameras. Pillow's forty other formats would only add attack surface.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")

# A progressive JPEG has 10 scans. The scans of an embedded thumbnail are counted as well.
USUAL_SCANS = 15
_START_OF_SCAN = b"\xff\xda"

_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_WORD_TO_BYTE = 1 / 257


def decode(data: bytes, limits: MediaLimits, budget: PixelBudget) -> np.ndarray:
    """Decode an image to uint8 [height, width, 3], resized (bicubic) to the budget.

    Raises the errors of `read_rgb` and `smart_resize`.
    """
    picture = read_rgb(data, limits, budget)
    height, width = smart_resize(picture.height, picture.width, budget)
    if picture.size != (width, height):  # Otherwise Pillow would copy it.
        picture = picture.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(picture)


def read_rgb(data: bytes, limits: MediaLimits, budget: PixelBudget | None = None) -> Image.Image:
    """Decode an image to RGB in its original size, upright. Of an animation, use the first frame.

    Colours are converted as by the released model's `convert("RGB")`: transparency is dropped, not
    blended with a background. The exception is 16-bit grey, which that call would clip almost
    entirely to white; it is scaled to 8 bits. The size is checked before anything is decoded, and
    the aspect ratio too if there is a `budget`. Raises `InvalidRequest` for an unsupported format
    or too many pixels, and Pillow's errors for a broken file.
    """
    picture = _open(data, limits)
    if picture.width * picture.height > limits.pixels:
        raise _too_large(limits)
    _check_scans(data, picture, limits)
    if budget is not None:
        smart_resize(picture.height, picture.width, budget)
    picture.load()
    rgb = _to_rgb(picture)
    transposition = _UPRIGHT.get(picture.getexif().get(_ORIENTATION, 1))
    return rgb if transposition is None else rgb.transpose(transposition)


def read_size(data: bytes, limits: MediaLimits) -> tuple[int, int]:
    """Return (width, height) of an image's header.

    Raises `InvalidRequest` for an unsupported format.
    """
    return _open(data, limits).size


def _open(data: bytes, limits: MediaLimits) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        formats = ", ".join(FORMATS)
        raise InvalidRequest(f"is not an image in a supported format ({formats})") from error
    except Image.DecompressionBombError as error:
        raise _too_large(limits) from error


def _check_scans(data: bytes, picture: Image.Image, limits: MediaLimits) -> None:
    """Reject a JPEG with very many scans: each scan costs as much as decoding all pixels once."""
    if picture.format != "JPEG":
        return
    num_scans = data.count(_START_OF_SCAN)
    max_pixels = limits.pixels * USUAL_SCANS
    if num_scans * picture.width * picture.height > max_pixels:
        raise InvalidRequest(
            f"the picture has {num_scans} scans of {picture.width}x{picture.height} pixels; at "
            f"most {max_pixels} pixels are decoded in all: save it with fewer scans"
        )


def _too_large(limits: MediaLimits) -> InvalidRequest:
    return InvalidRequest(f"the picture has more than {limits.pixels} pixels")


def _to_rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I;16"):
        grey = np.rint(np.asarray(picture) * _WORD_TO_BYTE).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    return picture if picture.mode == "RGB" else picture.convert("RGB")
