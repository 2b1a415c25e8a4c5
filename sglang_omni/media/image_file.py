"""Encode drawn pixels to an image file that says that it was generated.

Pillow is imported at the first use: the API process mostly encodes none of its formats.
"""

import io
from typing import Literal

import numpy as np

from sglang_omni.media.png import encode_png

ImageFileType = Literal["png", "jpeg", "webp"]

_XMP_KEY = "XML:com.adobe.xmp"
# The term of the International Press Telecommunications Council for images made by a model, in the
# property in which it is to stand.
GENERATED_SOURCE = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
_SOFTWARE_TAG = 0x0131


def get_image_media_type(file_type: ImageFileType) -> str:
    """Return the media type of a file."""
    return f"image/{file_type}"


def encode_image(
    pixels: np.ndarray, file_type: ImageFileType, quality: int, software: str
) -> bytes:
    """Return the file of an image, uint8 [height, width, 3].

    Its XMP says that a model made it, and `software` made the file. `quality` is a percentage; a
    PNG has no quality.
    """
    pixels, xmp = np.ascontiguousarray(pixels), _build_xmp(software)
    if file_type == "png":
        return encode_png(pixels, {"Software": software, _XMP_KEY: xmp})
    from PIL import Image

    exif = Image.Exif()
    exif[_SOFTWARE_TAG] = software
    buffer = io.BytesIO()
    # Pillow's lowest quality of a JPEG is 1.
    Image.fromarray(pixels).save(
        buffer, file_type, quality=max(1, quality), exif=exif, xmp=xmp.encode()
    )
    return buffer.getvalue()


def _build_xmp(software: str) -> str:
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description rdf:about=""'
        ' xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"'
        ' xmlns:xmp="http://ns.adobe.com/xap/1.0/"'
        f' xmp:CreatorTool="{software}"'
        f' Iptc4xmpExt:DigitalSourceType="{GENERATED_SOURCE}"/>'
        '</rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    )
