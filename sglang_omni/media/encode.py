"""Samples in, bytes of an audio format out; streamed or as one complete file."""

import math
from typing import Literal

import numpy as np

from sglang_omni.errors import EngineFailed
from sglang_omni.media import wav
from sglang_omni.media.resample import Resampler

AudioFormat = Literal["wav", "pcm"]
FULL_SCALE = 32767


def to_int16(pcm: np.ndarray) -> bytes:
    """Little-endian signed 16-bit samples: clip to [-1, 1], scale by 32767, round to nearest.

    Raises `EngineFailed` for NaN and infinity, which have no place on that scale.
    """
    peak = _peak(pcm)
    scaled = pcm * FULL_SCALE
    if peak > 1.0:
        np.clip(scaled, -FULL_SCALE, FULL_SCALE, out=scaled)
    return np.rint(scaled, out=scaled).astype("<i2").tobytes()


def _peak(pcm: np.ndarray) -> float:
    """The largest magnitude. Raises `EngineFailed` for samples that are not finite."""
    if not pcm.size:
        return 0.0
    # Both pass a NaN on, so that two numbers tell of every sample, and no copy is made.
    peak = float(np.maximum(pcm.max(), -pcm.min()))
    if not math.isfinite(peak):
        raise EngineFailed("the synthesised audio has samples that are not finite")
    return peak


class AudioEncoder:
    """Encodes one mono stream. Everything `push` and `finish` return, joined, is the file.

    `streaming` gives bytes as soon as they exist, with a WAV header of unknown length in front
    of the first samples. Otherwise everything comes from `finish`, with true sizes in the header.
    """

    def __init__(
        self, audio_format: AudioFormat, source_rate: int, target_rate: int, streaming: bool
    ) -> None:
        self._format = audio_format
        self._rate = target_rate
        self._streaming = streaming
        self._resampler = Resampler(source_rate, target_rate)
        self._held: list[bytes] = []
        self._header_due = audio_format == "wav"

    def push(self, pcm: np.ndarray) -> bytes:
        """Encode float32 samples `[samples]`. Raises `EngineFailed` for samples not finite."""
        if not self._resampler.passes_through:
            # The filter would carry a NaN into the chunks that follow.
            _peak(pcm)
        data = to_int16(self._resampler.push(np.ascontiguousarray(pcm, dtype=np.float32)))
        if self._streaming:
            return self._with_header(data, None) if data else b""
        self._held.append(data)
        return b""

    def finish(self) -> bytes:
        """The rest of the file; for a complete file, all of it. Call once."""
        data = b"".join((*self._held, to_int16(self._resampler.finish())))
        return self._with_header(data, None if self._streaming else len(data))

    def _with_header(self, data: bytes, data_bytes: int | None) -> bytes:
        if not self._header_due:
            return data
        self._header_due = False
        return wav.header(self._rate, data_bytes) + data
