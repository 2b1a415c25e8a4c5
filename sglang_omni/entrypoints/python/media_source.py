"""Images and recordings as Python programs have them."""

import os
from pathlib import Path

import numpy as np

from sglang_omni.media import wav
from sglang_omni.media.encode import to_int16_array
from sglang_omni.media.limits import Kind
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.errors import InvalidRequest

Samples = tuple[np.ndarray, int]
"""Samples of one channel, [samples], int16 or float with full scale at -1 and 1; and their Hz."""
MediaSource = str | os.PathLike[str] | bytes | Samples
"""A path, an http(s) URL, a data URI, the bytes of a file, or samples."""

URL_SCHEMES = ("http:", "https:", "data:")


def to_media_part(kind: Kind, source: MediaSource, field: str) -> MediaPart:
    """Return the part of a message with this medium. Raises `InvalidRequest`, naming `field`."""
    return MediaPart(kind, (read_source(source, field),), field)


def read_source(source: MediaSource, field: str) -> str | bytes:
    """Return the bytes of a medium, or its URL. Raises `InvalidRequest`, naming `field`."""
    match source:
        case bytes():
            return source
        case tuple() if len(source) == 2 and isinstance(source[0], np.ndarray):
            return encode_wav(*source, field)
        case str() if source.lower().startswith(URL_SCHEMES):
            return source
        case str() | os.PathLike():
            return _read_file(Path(source), field)
    raise InvalidRequest(
        f"{field}: must be a path, a URL, bytes, or an array with its sample rate, "
        f"not {type(source).__name__}",
        param=field,
    )


def encode_wav(samples: np.ndarray, sample_rate: int, field: str) -> bytes:
    """Return samples [n] as the bytes of a WAV file of 16 bits. Raises `InvalidRequest`."""
    if samples.ndim != 1:
        raise InvalidRequest(f"{field}: needs one channel, [samples]", param=field)
    if samples.dtype != np.int16:
        if not np.issubdtype(samples.dtype, np.floating) or not np.isfinite(samples).all():
            raise InvalidRequest(f"{field}: samples must be int16 or finite floats", param=field)
        samples = to_int16_array(samples)
    data = samples.astype("<i2").tobytes()
    return wav.build_header(sample_rate, len(data)) + data


def _read_file(path: Path, field: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidRequest(
            f"{field}: cannot read {path}: {error.strerror}", param=field
        ) from None
