"""Files made to keep or to kill what decodes them.

They are answered or refused soon, and beside them a picture of somebody else is decoded all the
same.
"""

import asyncio
import struct
import time
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from PIL import Image

from sglang_omni.engines.media_decoder.contract import MediaDecoderSettings
from sglang_omni.engines.media_decoder.pool import MediaDecoderPool
from sglang_omni.engines.runtime.process import EngineHealth
from sglang_omni.media.limits import Kind, MediaLimits
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.files import RULES, clip, encoded, movie, picture, png_chunk, tone, wav

MAX_FILE_S = 4.0
MAX_OTHER_S = 2.0
MAX_MEMORY = 3 << 30
SIGNATURE = b"\x89PNG\r\n\x1a\n"
BOMB = zlib.compress(bytes(300 << 20), 9)


def with_chunk(kind: bytes, body: bytes) -> bytes:
    """A good PNG with one more chunk behind its header."""
    good = encoded(picture())
    return good[:33] + png_chunk(kind, body) + good[33:]


def animation(form: str, frames: int) -> bytes:
    pictures = [
        Image.new("RGB", (64, 64), (number % 256, number // 256, 0)) for number in range(frames)
    ]
    return encoded(pictures[0], form, save_all=True, append_images=pictures[1:])


def cyclic_tiff() -> bytes:
    """A TIFF whose next directory is its first."""
    good = bytearray(encoded(picture(), "TIFF"))
    (start,) = struct.unpack_from("<I", good, 4)
    (entries,) = struct.unpack_from("<H", good, start)
    struct.pack_into("<I", good, start + 2 + 12 * entries, start)
    return bytes(good)


def cyclic_exif() -> bytes:
    """A JPEG whose EXIF directory is its own sub-directory."""
    entry = struct.pack("<HHII", 0x8769, 4, 1, 8)
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 1) + entry + struct.pack("<I", 8)
    return encoded(picture(), "JPEG", exif=exif)


def progressive(scans: int, size: int) -> bytes:
    """A progressive JPEG whose last scan comes many times."""
    good = encoded(Image.new("RGB", (size, size)), "JPEG", progressive=True)
    last = good.rindex(b"\xff\xda")
    return good[:last] + good[last:-2] * scans + b"\xff\xd9"


def lying_wav() -> bytes:
    good = bytearray(wav(tone(1.0)))
    struct.pack_into("<I", good, 4, 0xFFFFFFF0)
    struct.pack_into("<I", good, 40, 0xFFFFFFF0)
    return bytes(good)


def wav_of_rate(rate: int) -> bytes:
    good = bytearray(wav(tone(1.0)))
    struct.pack_into("<I", good, 24, rate)
    return bytes(good)


def tagged_mp3() -> bytes:
    """An MP3 behind 20 MiB of tags."""
    size = 20 << 20
    length = bytes((size >> shift) & 0x7F for shift in (21, 14, 7, 0))
    return (
        b"ID3\x04\0\0" + length + bytes(size) + clip("mp3", "libmp3lame", tone(1.0, 44_100), 44_100)
    )


def huge_atom() -> bytes:
    good = movie(12)
    return good[:4] + good[4:].replace(b"\0\0\0\x08free", b"\x7f\xff\xff\xfffree", 1)


def forged_counts() -> bytes:
    """A film whose table of sizes has four thousand million entries."""
    good = bytearray(movie(12))
    struct.pack_into(">I", good, good.index(b"stsz") + 12, 0xFFFFFFFF)
    return bytes(good)


def many_texts() -> bytes:
    good = encoded(picture())
    return good[:33] + png_chunk(b"tEXt", b"x\0y") * 100_000 + good[33:]


def huge_exif() -> bytes:
    return with_chunk(b"eXIf", b"II*\0\x08\0\0\0\xff\xff" + bytes(20 << 20))


def costly_film() -> bytes:
    """1,200 frames of 4K, each by itself: 10,000 million pixels."""
    return movie(1, size=(3_840, 2_160), fps=25, form="mpegts", codec="mpeg2video") * 1_200


FILES: dict[str, tuple[Kind, Callable[[], bytes]]] = {
    "icc-bomb.png": ("image", lambda: with_chunk(b"iCCP", b"x\0\0" + BOMB)),
    "ztxt-bomb.png": ("image", lambda: with_chunk(b"zTXt", b"x\0\0" + BOMB)),
    "itxt-bomb.png": ("image", lambda: with_chunk(b"iTXt", b"x\0\1\0\0\0" + BOMB)),
    "many-texts.png": (
        "image",
        many_texts,
    ),
    "huge-exif.png": (
        "image",
        huge_exif,
    ),
    "huge-icc.jpg": ("image", lambda: encoded(picture(), "JPEG", icc_profile=bytes(10 << 20))),
    "cyclic-exif.jpg": ("image", cyclic_exif),
    "scans.jpg": ("image", lambda: progressive(5_000, 2_000)),
    "many.gif": ("image", lambda: animation("GIF", 3_000)),
    "many.apng": ("image", lambda: animation("PNG", 2_000)),
    "many.webp": ("image", lambda: animation("WEBP", 500)),
    "many.tiff": ("image", lambda: animation("TIFF", 2_000)),
    "cyclic.tiff": ("image", cyclic_tiff),
    "script.svg": (
        "image",
        lambda: b'<svg xmlns="http://www.w3.org/2000/svg"/>',
    ),
    "page.eps": ("image", lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"),
    "cut.jpg": ("image", lambda: encoded(picture(size=(640, 480)), "JPEG")[:-2_000]),
    "huge-atom.mp4": ("video", huge_atom),
    "forged-counts.mp4": ("video", forged_counts),
    "playlist.m3u8": ("video", lambda: b"#EXTM3U\n#EXTINF:1\nfile:///etc/passwd\n"),
    "costly.mp4": ("video", costly_film),
    "lying.wav": ("audio", lying_wav),
    "rate-1.wav": ("audio", lambda: wav_of_rate(1)),
    "rate-huge.wav": ("audio", lambda: wav_of_rate(0x7FFFFFFF)),
    "tagged.mp3": ("audio", tagged_mp3),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[MediaDecoderPool]:
    one = MediaDecoderPool(MediaDecoderSettings(MediaLimits(), RULES))
    await one.start()
    yield one
    await one.stop()


def healths(pool: MediaDecoderPool) -> list[EngineHealth]:
    return [process.health for process in pool.processes.values()]


def peak_bytes(pool: MediaDecoderPool) -> int:
    """The most that any decoder has ever had in memory."""
    peaks = []
    for health in healths(pool):
        lines = Path(f"/proc/{health.pid}/status").read_text().splitlines()
        peaks += [int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")]
    return max(peaks)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", FILES)
async def test_a_hostile_file_is_done_with_soon_and_hurts_nobody(
    pool: MediaDecoderPool, name: str
) -> None:
    kind, make = FILES[name]
    file, good = await asyncio.to_thread(make), encoded(picture())
    before = [health.restarts for health in healths(pool)]
    began = time.monotonic()
    hostile = [asyncio.create_task(pool.decode(kind, [file], tenant="hostile")) for _ in range(2)]
    await asyncio.sleep(0)
    await pool.decode("image", [good], tenant="other")
    assert time.monotonic() - began < MAX_OTHER_S
    results = await asyncio.gather(*hostile, return_exceptions=True)
    assert time.monotonic() - began < 2 * MAX_FILE_S
    for result in results:
        assert isinstance(result, (tuple, InvalidRequest)), result
    assert [health.restarts for health in healths(pool)] == before
    assert peak_bytes(pool) < MAX_MEMORY
