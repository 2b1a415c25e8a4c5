"""Write PNG files quickly: strips of rows are compressed in parallel.

One core takes longer to compress an image than a GPU takes to decode it. The strips are parts of
one deflate stream that do not refer to each other, so any reader reads the file.
"""

import os
import struct
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB, BITS = 2, 8
LEVEL = 1
"""zlib's fastest level: pixels hardly compress better at a higher one."""
MIN_STRIP_BYTES = 1 << 17
ZLIB_HEADER = b"\x78\x01"


def encode_png(
    pixels: np.ndarray, texts: Mapping[str, str] | None = None, workers: int | None = None
) -> bytes:
    """Return the PNG file of an image, uint8 [height, width, 3].

    Args:
        pixels: The image.
        texts: What the file says about itself, by keyword (Latin-1, at most 79 characters).
        workers: Number of threads that compress; None for one per core, at most 8.

    Raises:
        ValueError: The array is no such image.
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(f"expected uint8 [height, width, 3], not {pixels.dtype} {pixels.shape}")
    height, width, _ = pixels.shape
    data = filter_rows(pixels)
    header = struct.pack(">IIBBBBB", width, height, BITS, RGB, 0, 0, 0)
    compressed = _compress(data, workers or min(8, os.cpu_count() or 1))
    about = [(b"iTXt", _pack_text(key, text)) for key, text in (texts or {}).items()]
    chunks = ((b"IHDR", header), *about, (b"IDAT", compressed), (b"IEND", b""))
    return SIGNATURE + b"".join(_pack_chunk(name, content) for name, content in chunks)


def filter_rows(pixels: np.ndarray) -> np.ndarray:
    """Return the filtered rows, uint8 [height, 1 + 3 * width], each with its filter in front.

    A row is stored as differences from the left pixel (filter 1) or from the row above (filter 2),
    whichever are smaller in total.
    """
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, width * channels)
    differences = np.stack((rows, rows))
    differences[0, :, channels:] -= rows[:, :-channels]
    differences[1, 1:] -= rows[:-1]
    costs = np.abs(differences.view(np.int8).astype(np.int16)).sum(axis=2, dtype=np.int64)
    chosen = costs.argmin(axis=0)
    filtered = np.empty((height, 1 + width * channels), np.uint8)
    filtered[:, 0] = 1 + chosen
    filtered[:, 1:] = np.where(chosen[:, None] == 0, differences[0], differences[1])
    return filtered


def _compress(rows: np.ndarray, workers: int) -> bytes:
    """Return a zlib stream of the rows."""
    strips = max(1, min(workers, rows.nbytes // MIN_STRIP_BYTES))
    parts = [part for part in np.array_split(rows, strips) if len(part)]
    is_last = [index == len(parts) - 1 for index in range(len(parts))]
    with ThreadPoolExecutor(len(parts)) as pool:
        compressed = list(pool.map(_compress_strip, parts, is_last))
    checksum = struct.pack(">I", zlib.adler32(rows.data))
    return b"".join((ZLIB_HEADER, *compressed, checksum))


def _compress_strip(rows: np.ndarray, is_last: bool) -> bytes:
    """Return a part of a deflate stream that ends at a byte; only the last one ends the stream."""
    compressor = zlib.compressobj(LEVEL, wbits=-zlib.MAX_WBITS)
    end = zlib.Z_FINISH if is_last else zlib.Z_SYNC_FLUSH
    return compressor.compress(rows.data) + compressor.flush(end)


def _pack_text(keyword: str, text: str) -> bytes:
    """Return the content of an uncompressed iTXt chunk without a language."""
    return keyword.encode("latin-1") + bytes(5) + text.encode()


def _pack_chunk(name: bytes, content: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + checksum
