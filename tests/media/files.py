"""Media files that the tests write themselves, good and broken, and the rules they are read by."""

import io
import struct
import tempfile
import zlib
from fractions import Fraction
from typing import Any

import av
import numpy as np
import soundfile
from av.stream import Disposition
from PIL import Image

from sglang_omni.media.limits import MediaLimits, MediaRules, PixelBudget, VideoRules

LIMITS = MediaLimits()
RULES = MediaRules(
    image=PixelBudget(factor=32, min_pixels=4096, max_pixels=16384 * 1024),
    video=VideoRules(
        fps=2.0, frames=170, factor=32, min_pixels=128 * 1024, total_pixels=96 * 128 * 1024
    ),
    sample_rate=16_000,
)


def picture(mode: str = "RGB", size: tuple[int, int] = (64, 48), seed: int = 0) -> Image.Image:
    """A picture of noise; `size` is (width, height)."""
    bands = len(Image.new(mode, (1, 1)).getbands())
    values = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], bands), np.uint8)
    return Image.fromarray(values if bands > 1 else values[..., 0], mode=mode)


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """The file of a picture."""
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """One chunk of a PNG file with a valid checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, data: bytes) -> bytes:
    """A grey 8-bit PNG of any header, whatever its compressed `data` are."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [png_chunk(b"IHDR", header), png_chunk(b"IDAT", data), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def movie(
    frames: int,
    *,
    fps: Fraction | int = 10,
    size: tuple[int, int] = (64, 48),
    form: str = "mp4",
    codec: str = "mpeg4",
    pts: list[int] | None = None,
    options: dict[str, str] | None = None,
) -> bytes:
    """A video whose frame i is of one grey, 2 * i (up to 254). `pts` are times in units of 1/fps.

    `size` is (width, height).
    """
    # A real file, since an index can be moved to its front only by reading it again.
    with tempfile.NamedTemporaryFile() as file:
        _write_movie(file.name, frames, fps, size, form, codec, pts, options or {})
        return file.read()


def _write_movie(
    path: str,
    frames: int,
    fps: Fraction | int,
    size: tuple[int, int],
    form: str,
    codec: str,
    pts: list[int] | None,
    options: dict[str, str],
) -> None:
    with av.open(path, "w", format=form, options=options) as container:
        stream = container.add_stream(codec, rate=fps)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.bit_rate = 200_000
        for index in range(frames):
            grey = np.full((size[1], size[0], 3), min(2 * index, 254), np.uint8)
            frame = av.VideoFrame.from_ndarray(grey, format="rgb24")
            frame.pts = index if pts is None else pts[index]
            frame.time_base = 1 / Fraction(fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def film(
    seconds: float,
    *tracks: np.ndarray,
    rate: int = 16_000,
    default: int = 0,
    form: str = "matroska",
    codec: str = "pcm_s16le",
    fps: int = 10,
) -> bytes:
    """A video of grey frames with tracks of sound, each float32 [samples] at `rate` Hz."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=form) as container:
        pictures = container.add_stream("mpeg4", rate=fps)
        assert isinstance(pictures, av.VideoStream)
        pictures.width, pictures.height, pictures.pix_fmt = 64, 48, "yuv420p"
        sounds = [container.add_stream(codec, rate=rate, layout="mono") for _ in tracks]
        for index, sound in enumerate(sounds):
            sound.disposition = Disposition.default if index == default else Disposition(0)
        for index in range(round(seconds * fps)):
            grey = np.full((48, 64, 3), min(2 * index, 254), np.uint8)
            frame = av.VideoFrame.from_ndarray(grey, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, fps)
            container.mux(pictures.encode(frame))
        container.mux(pictures.encode())
        for sound, samples in zip(sounds, tracks, strict=True):
            _write_track(container, sound, samples, rate)
    return buffer.getvalue()


def _write_track(container: Any, stream: Any, samples: np.ndarray, rate: int) -> None:
    resampler = av.AudioResampler(stream.format, "mono", rate, stream.frame_size or 1024)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples[None]), "fltp", "mono")
    frame.sample_rate, frame.pts = rate, 0
    for ready in [*resampler.resample(frame), *resampler.resample(None)]:
        container.mux(stream.encode(ready))
    container.mux(stream.encode())


def tone(seconds: float, rate: int = 16_000, channels: int = 1, hz: float = 440.0) -> np.ndarray:
    """Float32 [samples, channels]: a sine in the first channel, silence in the others."""
    samples = np.zeros((int(seconds * rate), channels), np.float32)
    samples[:, 0] = 0.5 * np.sin(2 * np.pi * hz * np.arange(len(samples)) / rate)
    return samples


def wav(
    samples: np.ndarray, rate: int = 16_000, subtype: str = "PCM_16", form: str = "WAV"
) -> bytes:
    """The file of [samples, channels], by libsndfile."""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, subtype=subtype, format=form)
    return buffer.getvalue()


def clip(form: str, codec: str, samples: np.ndarray, rate: int) -> bytes:
    """The file of float32 [samples, channels], by FFmpeg's libraries."""
    buffer = io.BytesIO()
    layout = {1: "mono", 2: "stereo"}[samples.shape[1]]
    with av.open(buffer, "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        assert isinstance(stream, av.AudioStream)
        resampler = av.AudioResampler(stream.format, layout, rate, stream.frame_size or 1024)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.T), "fltp", layout)
        frame.sample_rate, frame.pts = rate, 0
        for ready in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(ready))
        container.mux(stream.encode())
    return buffer.getvalue()
