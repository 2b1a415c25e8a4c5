"""The bytes of one picture to RGB pixels, by Pillow."""

import io

import numpy as np
from PIL import Image, UnidentifiedImageError

from sglang_omni.media.limits import MediaLimits, PixelBudget
from sglang_omni.media.sizes import smart_resize
from sglang_omni.protocol.errors import InvalidRequest

# What browsers and cameras write. Pillow's other forty formats are attack surface for nobody's use.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")

# A progressive JPEG has 10, and a thumbnail's are counted, too.
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
    """The picture as uint8 [height, width, 3], resized (bicubic) to the budget.

    Raises as `read_rgb` and `smart_resize` do.
    """
    picture = read_rgb(data, limits, budget)
    height, width = smart_resize(picture.height, picture.width, budget)
    if picture.size != (width, height):  # Pillow would copy it.
        picture = picture.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(picture)


def read_rgb(data: bytes, limits: MediaLimits, budget: PixelBudget | None = None) -> Image.Image:
    """The picture in its own size, upright, in RGB; of an animation the first frame.

    Colours are converted as the released model's `convert("RGB")` does: transparency is dropped,
    not blended with a background. Only 16-bit grey is scaled to 8 bits, where that call would clip
    nearly all of it to white. The size is checked before anything is decoded, also against the
    aspect of a `budget`. Raises `InvalidRequest` for another format or too many pixels, and what
    Pillow raises for a broken file.
    """
    picture = _open(data, limits)
    if picture.width * picture.height > limits.pixels:
        raise _too_large(limits)
    _check_scans(data, picture, limits)
    if budget is not None:
        smart_resize(picture.height, picture.width, budget)
    picture.load()
    rgb = _to_rgb(picture)
    turn = _UPRIGHT.get(picture.getexif().get(_ORIENTATION, 1))
    return rgb if turn is None else rgb.transpose(turn)


def read_size(data: bytes, limits: MediaLimits) -> tuple[int, int]:
    """The (width, height) in a picture's header. Raises `InvalidRequest` for another format."""
    return _open(data, limits).size


def _open(data: bytes, limits: MediaLimits) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        known = ", ".join(FORMATS)
        raise InvalidRequest(f"is not an image in a known format ({known})") from error
    except Image.DecompressionBombError as error:
        raise _too_large(limits) from error


def _check_scans(data: bytes, picture: Image.Image, limits: MediaLimits) -> None:
    """Refuse a JPEG that goes over its pixels very often: each time costs as much as the first."""
    if picture.format != "JPEG":
        return
    scans = data.count(_START_OF_SCAN)
    most = limits.pixels * USUAL_SCANS
    if scans * picture.width * picture.height > most:
        raise InvalidRequest(
            f"the picture has {scans} scans of {picture.width}x{picture.height} pixels; at most "
            f"{most} pixels are decoded in all: save it with fewer scans"
        )


def _too_large(limits: MediaLimits) -> InvalidRequest:
    return InvalidRequest(f"the picture has more than {limits.pixels} pixels")


def _to_rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I;16"):
        grey = np.rint(np.asarray(picture) * _WORD_TO_BYTE).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    return picture if picture.mode == "RGB" else picture.convert("RGB")
