"""Samples in, bytes of an audio format out; streamed or as one complete file."""

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
    _require_finite(pcm)
    return np.rint(np.clip(pcm, -1.0, 1.0) * FULL_SCALE).astype("<i2").tobytes()


def _require_finite(pcm: np.ndarray) -> None:
    if not np.isfinite(pcm).all():
        raise EngineFailed("the synthesised audio has samples that are not finite")


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
        # Checked before the filter, which would carry a NaN into the chunks that follow.
        _require_finite(pcm)
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
