"""Samples in, bytes of an audio format out; streamed or as one complete file."""

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


def media_type(audio_format: AudioFormat) -> str:
    """What HTTP calls a format."""
    codec = CODECS.get(audio_format)
    return codec.media_type if codec else f"audio/{audio_format}"


def rates_of(audio_format: AudioFormat) -> tuple[int, ...]:
    """The sample rates (Hz) that a format takes, empty for any."""
    codec = CODECS.get(audio_format)
    return codec.rates if codec else ()


def to_int16(pcm: np.ndarray) -> bytes:
    """Little-endian signed 16-bit samples: clip to [-1, 1], scale by 32767, round to nearest.

    Raises `EngineFailed` for NaN and infinity, which have no place on that scale.
    """
    return int16_samples(pcm).tobytes()


def int16_samples(pcm: np.ndarray) -> np.ndarray:
    """The same as an array [samples]."""
    peak = _peak(pcm)
    scaled = pcm * FULL_SCALE
    if peak > 1.0:
        np.clip(scaled, -FULL_SCALE, FULL_SCALE, out=scaled)
    return np.rint(scaled, out=scaled).astype("<i2")


def _peak(pcm: np.ndarray) -> float:
    """The largest magnitude. Raises `EngineFailed` for samples that are not finite."""
    if not pcm.size:
        return 0.0
    # Both pass a NaN on, so that two numbers tell of every sample, and no copy is made.
    peak = float(np.maximum(pcm.max(), -pcm.min()))
    if not math.isfinite(peak):
        raise EngineFailed("the synthesised audio has samples that are not finite")
    return peak


class Writer(Protocol):
    """The last stage: 16-bit samples to the bytes of a file."""

    def push(self, pcm: np.ndarray) -> bytes:
        """Take int16 samples [n]; returns the bytes that are ready."""

    def finish(self) -> bytes:
        """The rest of the file. Called once."""


class PlainWriter:
    """Samples as they are, behind a WAV header or none.

    `streaming` gives bytes as soon as they exist, with a header of unknown length in front of the
    first samples. Otherwise everything comes from `finish`, with true sizes in the header.
    """

    def __init__(self, sample_rate: int, streaming: bool, header: bool) -> None:
        self._rate, self._streaming, self._header_due = sample_rate, streaming, header
        self._held: list[bytes] = []

    def push(self, pcm: np.ndarray) -> bytes:
        data = pcm.tobytes()
        if self._streaming:
            return self._with_header(data, None) if data else b""
        self._held.append(data)
        return b""

    def finish(self) -> bytes:
        data = b"".join(self._held)
        return self._with_header(data, None if self._streaming else len(data))

    def _with_header(self, data: bytes, data_bytes: int | None) -> bytes:
        if not self._header_due:
            return data
        self._header_due = False
        return wav.header(self._rate, data_bytes) + data


class Tempo(Protocol):
    """The first stage: samples to samples at another tempo."""

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Take float32 samples [n]; returns those that are ready, [m]."""

    def finish(self) -> np.ndarray:
        """What is still held. Called once."""


class UsualTempo:
    """Samples as they come."""

    def push(self, pcm: np.ndarray) -> np.ndarray:
        return pcm

    def finish(self) -> np.ndarray:
        return np.zeros(0, np.float32)


def open_tempo(sample_rate: int, speed: float) -> Tempo:
    """The stage that changes the tempo by `speed`."""
    if speed == 1:
        return UsualTempo()
    # As with the codecs.
    from sglang_omni.media.stretch import TimeStretch

    return TimeStretch(sample_rate, speed)


def open_writer(audio_format: AudioFormat, sample_rate: int, streaming: bool) -> Writer:
    """The writer of a format."""
    if audio_format in CODECS:
        # Imported here because it brings FFmpeg along, which plain samples do not need.
        from sglang_omni.media.compress import Compressor

        return Compressor(CODECS[audio_format], sample_rate, streaming)
    return PlainWriter(sample_rate, streaming, header=audio_format == "wav")


class OutputAudioEncoder:
    """Encodes one mono stream. Everything `push` and `finish` return, joined, is the file.

    `speed` changes the tempo and leaves the pitch. `streaming` gives bytes as soon as they exist;
    otherwise everything comes from `finish`, with true sizes in the header. Samples may be louder
    than full scale: they are limited last, at the rate and tempo of the file.
    """

    def __init__(
        self,
        audio_format: AudioFormat,
        source_rate: int,
        target_rate: int,
        streaming: bool,
        speed: float = 1.0,
    ) -> None:
        self._resampler = Resampler(source_rate, target_rate)
        self._limiter = PeakLimiter(target_rate)
        self._pace: Tempo | None = None
        self._writer: Writer | None = None
        self._open = partial(open_writer, audio_format, target_rate, streaming)
        self._open_pace = partial(open_tempo, source_rate, speed)
        # A third of a second of sound takes a codec 3 to 7 ms, and the tempo filter one.
        self._slow = speed != 1 or audio_format in CODECS

    def push(self, pcm: np.ndarray) -> bytes:
        """Encode float32 samples `[samples]`. Raises `EngineFailed` for samples not finite."""
        # A filter would carry a NaN into the chunks that follow.
        _peak(pcm)
        paced = self._paced(np.ascontiguousarray(pcm, dtype=np.float32))
        return self._write(self._resampler.push(paced))

    async def encode(self, pcm: np.ndarray) -> bytes:
        """`push`, off the event loop where it would hold up the other streams."""
        return await asyncio.to_thread(self.push, pcm) if self._slow else self.push(pcm)

    async def close(self) -> bytes:
        """`finish`, in the same way."""
        return await asyncio.to_thread(self.finish) if self._slow else self.finish()

    def finish(self) -> bytes:
        """The rest of the file; for a complete file, all of it. Call once."""
        rest = self._paced(np.zeros(0, np.float32), last=True)
        paced = self._resampler.push(rest)
        data = self._write(np.concatenate((paced, self._resampler.finish())))
        assert self._writer is not None
        return data + self._writer.finish()

    def _paced(self, pcm: np.ndarray, last: bool = False) -> np.ndarray:
        """Opened with the first samples, as the writer is: `encode` does that off the loop too."""
        self._pace = self._pace or self._open_pace()
        return self._pace.finish() if last else self._pace.push(pcm)

    def _write(self, pcm: np.ndarray) -> bytes:
        self._writer = self._writer or self._open()
        return self._writer.push(int16_samples(self._limiter.push(pcm)))
