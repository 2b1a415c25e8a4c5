"""A decoding process answers every file with an array or with a reason, within its bounds."""

import os
import resource
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sglang_omni.engines.media_decoder.contract import Decoded, DecodeRequest, MediaDecoderSettings
from sglang_omni.engines.media_decoder.worker import MediaDecoderWorker
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.worker import StepInput, StepWorker
from sglang_omni.media.limits import Kind
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.files import (
    LIMITS,
    RULES,
    clip,
    encoded,
    movie,
    picture,
    png,
    png_chunk,
    tone,
    wav,
)

ROOT = Path(__file__).parents[3]
SETTINGS = MediaDecoderSettings(LIMITS, RULES)


def answer(kind: Kind, *files: bytes) -> tuple[Decoded | Exception, SharedArray]:
    """What a worker makes of one request."""
    array = SharedArray()
    request = DecodeRequest(kind, files, array)
    [(request_id, result)] = MediaDecoderWorker(SETTINGS).step(
        StepInput(arrivals=(("a", request),))
    )
    assert request_id == "a"
    assert isinstance(result, Decoded | Exception)
    return result, array


def test_the_worker_meets_the_contract() -> None:
    assert isinstance(MediaDecoderWorker(SETTINGS), StepWorker)


def test_each_kind_has_its_form() -> None:
    image, array = answer("image", encoded(picture()))
    assert isinstance(image, Decoded)
    assert image.last
    assert (array.read(image.layout).shape, image.seconds) == ((1, 64, 64, 3), ())
    video, array = answer("video", movie(30))
    assert isinstance(video, Decoded)
    assert array.read(video.layout).shape == (6, 320, 448, 3)
    assert len(video.seconds) == 3
    frames, array = answer("video", *[encoded(picture())] * 3)
    assert isinstance(frames, Decoded)
    assert array.read(frames.layout).shape == (4, 320, 448, 3)
    assert frames.seconds == (0.25, 1.0)
    audio, array = answer("audio", wav(tone(0.5)))
    assert isinstance(audio, Decoded)
    samples = array.read(audio.layout)
    assert (samples.shape, samples.dtype) == ((8000,), np.dtype(np.float32))


def test_counters_count_both_ends() -> None:
    worker = MediaDecoderWorker(SETTINGS)
    for file in (b"nothing", encoded(picture()), b"nothing"):
        request = DecodeRequest("image", (file,), SharedArray())
        worker.step(StepInput(arrivals=(("a", request),)))
    assert worker.counters() == {"decoded": 1, "request_errors": 2}


def test_a_result_that_cannot_be_handed_over_is_no_fault_of_the_file() -> None:
    array = SharedArray()
    array.path = "/proc/self/fd/987654"
    request = DecodeRequest("image", (encoded(picture()),), array)
    [(_, result)] = MediaDecoderWorker(SETTINGS).step(StepInput(arrivals=(("a", request),)))
    assert isinstance(result, OSError)


def forged(data: bytes, at: int, form: str, *values: int) -> bytes:
    """A file with other numbers at some place of its header."""
    return data[:at] + struct.pack(form, *values) + data[at + struct.calcsize(form) :]


def tiff_of(width: int, height: int) -> bytes:
    """A TIFF that claims a size; the values of its two first tags are forged."""
    data = bytearray(encoded(picture("L", (16, 16)), "TIFF"))
    first = struct.unpack("<I", data[4:8])[0] + 2
    for tag, value in ((256, width), (257, height)):
        at = data.index(struct.pack("<H", tag), first)
        data[at : at + 12] = struct.pack("<HHII", tag, 4, 1, value)
    return bytes(data)


def deflate_bomb() -> bytes:
    """A small PNG of few pixels by its header and a gigabyte by its data."""
    squeeze = zlib.compressobj(9)
    data = b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(256)) + squeeze.flush()
    return png(64, 64, data)


def text_bomb() -> bytes:
    """A PNG whose comment unfolds to 128 MB."""
    data = encoded(picture())
    bomb = png_chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(128 << 20), 9))
    return data[:33] + bomb + data[33:]


def lying_mp4() -> bytes:
    """A video whose header declares ten thousand hours."""
    data = movie(20)
    at = data.index(b"mvhd") + 4 + 12
    lied = forged(data, at, ">II", 1, 36_000_000)
    at = lied.index(b"mdhd") + 4 + 12
    return forged(lied, at, ">II", 1, 36_000_000)


HOSTILE: list[tuple[str, Kind, Callable[[], bytes], str]] = [
    ("png bomb", "image", lambda: png(50_000, 50_000, zlib.compress(b"")), "100000000 pixels"),
    (
        "cut webp",
        "image",
        lambda: encoded(picture(), "WEBP")[:40],
        "cannot be decoded|not an image",
    ),
    ("png without data", "image", lambda: png(5_000, 5_000, b""), "cannot be decoded: "),
    ("cut png", "image", lambda: encoded(picture())[:-200], "cannot be decoded: "),
    ("cut jpeg", "image", lambda: encoded(picture(), "JPEG")[:-200], "cannot be decoded: .*trunc"),
    ("text", "image", lambda: b"hello, I am a picture", "not an image in a supported format"),
    ("html", "image", lambda: b"<html>404</html>" * 100, "not an image"),
    (
        "forged gif",
        "image",
        lambda: forged(encoded(picture("L"), "GIF"), 6, "<HH", 65_535, 65_535),
        "100000000 pixels",
    ),
    ("forged tiff", "image", lambda: tiff_of(60_000, 60_000), "100000000 pixels"),
    ("forged small tiff", "image", lambda: tiff_of(5_000, 5_000), "cannot be decoded: "),
    ("svg", "image", lambda: b"<svg><script/></svg>", "not an image"),
    (
        "postscript",
        "image",
        lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n",
        "not an im",
    ),
    ("text bomb", "image", text_bomb, "cannot be decoded: |not an image"),
    ("strip", "image", lambda: png(20_000, 1, b""), "200 times as long"),
    ("no image", "image", lambda: b"", "not an image"),
    ("many frames", "video", lambda: movie(10_000, fps=60, size=(16, 16)), "more than 9000 frames"),
    ("cut mp4", "video", lambda: movie(50)[:-1000], "header is broken|truncated"),
    ("lying mp4", "video", lying_mp4, "longer than 600 s|truncated"),
    ("text video", "video", lambda: b"a video" * 1000, "not an audio or video file"),
    (
        "play list",
        "video",
        lambda: b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1/x.ts\n",
        "not an audio or video file",
    ),
    ("sound", "video", lambda: wav(tone(1.0)), "no video stream"),
    ("nothing", "video", lambda: b"", "not an audio or video file"),
    ("nan", "audio", lambda: wav(tone(0.1) * np.nan, subtype="FLOAT"), "not finite"),
    ("infinity", "audio", lambda: wav(np.full((900, 1), np.inf), subtype="FLOAT"), "not finite"),
    ("no samples", "audio", lambda: wav(np.zeros((0, 1), np.float32)), "no sound"),
    ("few samples", "audio", lambda: wav(np.zeros((100, 1), np.float32)), "too short"),
    ("1 Hz", "audio", lambda: forged(wav(tone(0.5)), 24, "<I", 1), "1 Hz|header"),
    ("10 MHz", "audio", lambda: forged(wav(tone(0.5)), 24, "<I", 10**7), "10000000 Hz|header"),
    (
        "channels",
        "audio",
        lambda: forged(wav(tone(0.5)), 22, "<H", 65_535),
        "65535 channels|no sound|header",
    ),
    (
        "two hours in a small file",
        "audio",
        lambda: wav(np.zeros((7200 * 16_000, 1), np.int16), form="FLAC"),
        "longer than 300 s",
    ),
    ("cut wav", "audio", lambda: wav(tone(0.5))[:30], "not an audio"),
    ("picture", "audio", lambda: encoded(picture()), "not an audio"),
    ("only a picture", "audio", lambda: movie(3), "no sound"),
]


@pytest.mark.parametrize(
    ("kind", "make", "message"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_a_hostile_file_is_refused_with_its_reason(
    kind: Kind, make: Callable[[], bytes], message: str
) -> None:
    data = make()
    began, before = time.monotonic(), peak_bytes()
    result, _ = answer(kind, data)
    assert isinstance(result, InvalidRequest), result
    with pytest.raises(InvalidRequest, match=message):
        raise result
    assert " at 0x" not in result.message
    assert "Errno" not in result.message
    assert time.monotonic() - began < 5
    assert peak_bytes() - before < 400 << 20


def test_data_beyond_the_size_of_a_png_is_not_unfolded() -> None:
    data, before = deflate_bomb(), peak_bytes()
    result, _ = answer("image", data)
    # Pillow reads the rows that the header promises and leaves the rest alone.
    assert isinstance(result, Decoded), result
    assert peak_bytes() - before < 100 << 20


def peak_bytes() -> int:
    """The most memory this process ever had in use."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def confined(program: str) -> str:
    """The output of a program in a process that the worker's factory has confined to 800 MiB."""
    head = (
        "import dataclasses, sys\n"
        "from sglang_omni.engines.media_decoder.worker import *\n"
        "from sglang_omni.media.limits import *\n"
        "from sglang_omni.engines.runtime.shared_array import SharedArray\n"
        "limits = MediaLimits(memory_bytes=800 << 20)\n"
        "rules = MediaRules(PixelBudget(32, 4096, 16384 * 1024),"
        " VideoRules(2.0, 170, 32, 131072, 12582912), 16000)\n"
        "worker = open_worker(MediaDecoderSettings(limits, rules))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", head + program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_a_decoder_imports_neither_torch_nor_sglang() -> None:
    assert (
        confined("print([n for n in ('torch', 'sglang', 'transformers') if n in sys.modules])")
        == "[]"
    )


def test_the_process_has_one_thread_a_library_and_bounded_memory() -> None:
    assert confined("print(cv2.getNumThreads(), Image.MAX_IMAGE_PIXELS)") == "1 100000000"
    assert confined("print(resource.getrlimit(resource.RLIMIT_AS)[0])") == str(800 << 20)


def test_a_picture_beyond_the_memory_is_refused_and_the_next_one_decoded(tmp_path: Path) -> None:
    rows = zlib.compress(bytes(9_900 * 9_901), 1)
    (tmp_path / "large").write_bytes(png(9_900, 9_900, rows))
    (tmp_path / "small").write_bytes(encoded(picture()))
    program = (
        f"for name in ('large', 'small'):\n"
        f"    data = open({str(tmp_path)!r} + '/' + name, 'rb').read()\n"
        f"    request = DecodeRequest('image', (data,), SharedArray())\n"
        f"    [(_, result)] = worker.step(StepInput((('a', request),)))\n"
        f"    print(result)\n"
    )
    large, small = confined(program).splitlines()
    assert large == "the picture needs more memory than a decoder may have"
    assert small.startswith("Decoded(")


@pytest.mark.parametrize("form", ["mp3", "mp4"])
def test_random_damage_ends_in_an_answer(form: str) -> None:
    random = np.random.default_rng(1)
    whole = {
        "mp3": lambda: clip("mp3", "libmp3lame", tone(0.3, 44_100), 44_100),
        "mp4": lambda: movie(20),
    }
    data = np.frombuffer(whole[form](), np.uint8)
    for _ in range(25):
        damaged = data.copy()
        damaged[random.integers(0, len(data), 20)] = random.integers(0, 256, 20)
        result, _ = answer("audio" if form == "mp3" else "video", damaged.tobytes())
        assert isinstance(result, Decoded | InvalidRequest), result
