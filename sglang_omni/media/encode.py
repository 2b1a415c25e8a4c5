"""Encode samples to an audio format, as a stream or as one complete file."""

import asyncio
import math
from functools import partial
from typing import Protocol

import numpy as np

from sglang_omni.media import wav
from sglang_omni.media.codecs import CODECS
from sglang_omni.media.limiter import PeakLimiter
from sglang_omni.media.resample import Resampler
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.errors import EngineFailed

FULL_SCALE = 32767


def get_media_type(audio_format: AudioFormat) -> str:
    """Return the HTTP media type of a format."""
    codec = CODECS.get(audio_format)
    return codec.media_type if codec else f"audio/{audio_format}"


def get_sample_rates(audio_format: AudioFormat) -> tuple[int, ...]:
    """Return the sample rates (Hz) that a format supports, empty for any."""
    codec = CODECS.get(audio_format)
    return codec.rates if codec else ()


def to_int16_bytes(pcm: np.ndarray) -> bytes:
    """Convert to little-endian 16-bit samples: clip to [-1, 1], scale by 32767, round to nearest.

    Raises `EngineFailed` for NaN and infinity.
    """
    return to_int16_array(pcm).tobytes()


def to_int16_array(pcm: np.ndarray) -> np.ndarray:
    """Convert to 16-bit samples as `to_int16_bytes` does, but return an array [samples]."""
    peak = check_peak(pcm)
    scaled = pcm * FULL_SCALE
    if peak > 1.0:
        np.clip(scaled, -FULL_SCALE, FULL_SCALE, out=scaled)
    return np.rint(scaled, out=scaled).astype("<i2")


def check_peak(pcm: np.ndarray) -> float:
    """Return the largest magnitude. Raises `EngineFailed` for samples that are not finite."""
    if not pcm.size:
        return 0.0
    # `max` and `min` propagate NaN, so they check every sample without a copy.
    peak = float(np.maximum(pcm.max(), -pcm.min()))
    if not math.isfinite(peak):
        raise EngineFailed("the synthesized audio has samples that are not finite")
    return peak


class Writer(Protocol):
    """The last stage: write 16-bit samples to the bytes of a file."""

    def push(self, pcm: np.ndarray) -> bytes:
        """Take int16 samples [n] and return the bytes that are ready."""

    def finish(self) -> bytes:
        """Return the rest of the file. Called once."""


class PlainWriter:
    """Write uncompressed samples, with or without a WAV header.

    With `streaming`, bytes are returned as soon as they exist, and the header has an unknown
    length. Otherwise `finish` returns all of them, with the true sizes in the header.
    """

    def __init__(self, sample_rate: int, streaming: bool, header: bool) -> None:
        self._rate, self._streaming, self._header_due = sample_rate, streaming, header
        self._held: list[bytes] = []

    def push(self, pcm: np.ndarray) -> bytes:
        """Return the bytes of int16 samples [n] if they are streamed, else keep them."""
        data = pcm.tobytes()
        if self._streaming:
            return self._with_header(data, None) if data else b""
        self._held.append(data)
        return b""

    def finish(self) -> bytes:
        """Return the bytes that are kept, after a header if it is due."""
        data = b"".join(self._held)
        return self._with_header(data, None if self._streaming else len(data))

    def _with_header(self, data: bytes, data_bytes: int | None) -> bytes:
        if not self._header_due:
            return data
        self._header_due = False
        return wav.build_header(self._rate, data_bytes) + data


class Tempo(Protocol):
    """The first stage: change the tempo of samples."""

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Take float32 samples [n] and return those that are ready, [m]."""

    def finish(self) -> np.ndarray:
        """Return the samples that are still held. Called once."""


class UnchangedTempo:
    """Pass samples through unchanged."""

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Return the same samples [n]."""
        return pcm

    def finish(self) -> np.ndarray:
        """Return no samples: none are held."""
        return np.zeros(0, np.float32)


def create_tempo(sample_rate: int, speed: float) -> Tempo:
    """Return the stage that changes the tempo by `speed`."""
    if speed == 1:
        return UnchangedTempo()
    # Imported here for the same reason as the codecs in `create_writer`.
    from sglang_omni.media.stretch import TimeStretch

    return TimeStretch(sample_rate, speed)


def create_writer(audio_format: AudioFormat, sample_rate: int, streaming: bool) -> Writer:
    """Return the writer of a format."""
    if audio_format in CODECS:
        # Imported here because it loads FFmpeg, which uncompressed samples do not need.
        from sglang_omni.media.compress import Compressor

        return Compressor(CODECS[audio_format], sample_rate, streaming)
    return PlainWriter(sample_rate, streaming, header=audio_format == "wav")


class OutputAudioEncoder:
    """Encode one mono stream. The outputs of `push` and `finish` join to the file.

    `speed` changes the tempo but not the pitch. With `streaming`, bytes are returned as soon as
    they exist. Otherwise `finish` returns all of them, with the true sizes in the header. Samples
    may exceed full scale: they are limited last, at the sample rate and tempo of the file.
    """

    def __init__(
        self,
        audio_format: AudioFormat,
        source_rate: int,
        target_rate: int,
        streaming: bool,
        speed: float = 1.0,
    ) -> None:
        self._rate, self._num_samples = target_rate, 0
        self._resampler = Resampler(source_rate, target_rate)
        self._limiter = PeakLimiter(target_rate)
        self._tempo: Tempo | None = None
        self._writer: Writer | None = None
        self._create_writer = partial(create_writer, audio_format, target_rate, streaming)
        self._create_tempo = partial(create_tempo, source_rate, speed)
        # For 0.3 s of sound a codec takes 3 to 7 ms, and the tempo filter 1 ms.
        self._uses_threads = speed != 1 or audio_format in CODECS

    @property
    def seconds(self) -> float:
        """Return the length of the audio so far."""
        return self._num_samples / self._rate

    def push(self, pcm: np.ndarray) -> bytes:
        """Encode float32 samples [n]. Raises `EngineFailed` for samples that are not finite."""
        # A filter would carry a NaN into later chunks.
        check_peak(pcm)
        samples = self._change_tempo(np.ascontiguousarray(pcm, dtype=np.float32))
        return self._write(self._resampler.push(samples))

    async def encode(self, pcm: np.ndarray) -> bytes:
        """Run `push`, in a thread if it would block the event loop."""
        return await asyncio.to_thread(self.push, pcm) if self._uses_threads else self.push(pcm)

    async def close(self) -> bytes:
        """Run `finish`, in a thread if it would block the event loop."""
        return await asyncio.to_thread(self.finish) if self._uses_threads else self.finish()

    def finish(self) -> bytes:
        """Return the rest of the file, or all of it without `streaming`. Call once."""
        rest = self._change_tempo(np.zeros(0, np.float32), last=True)
        samples = self._resampler.push(rest)
        data = self._write(np.concatenate((samples, self._resampler.finish())))
        assert self._writer is not None
        return data + self._writer.finish()

    def _change_tempo(self, pcm: np.ndarray, last: bool = False) -> np.ndarray:
        """Change the tempo. The stage is created on first use, so `encode` creates it in a thread.

        The writer is created in the same way.
        """
        self._tempo = self._tempo or self._create_tempo()
        return self._tempo.finish() if last else self._tempo.push(pcm)

    def _write(self, pcm: np.ndarray) -> bytes:
        self._writer = self._writer or self._create_writer()
        self._num_samples += pcm.size
        return self._writer.push(to_int16_array(self._limiter.push(pcm)))
