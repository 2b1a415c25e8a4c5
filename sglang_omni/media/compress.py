"""Encode samples to a compressed format, with FFmpeg's encoders."""

import io
from typing import cast

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream

from sglang_omni.media.codecs import Codec


class _Pipe:
    """A write-only file for the container, without seeking."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data, self._parts = b"".join(self._parts), []
        return data


class _BytesFile(io.BytesIO):
    """A seekable file for the container, which rewrites its header at the end."""

    def take(self) -> bytes:
        return self.getvalue()


class Compressor:
    """Encode one mono stream. The outputs of `push` and `finish` join to the file.

    With `streaming`, bytes are returned as soon as they exist. Otherwise `finish` returns all of
    them, and the header has the length if the format supports it.
    """

    def __init__(self, codec: Codec, sample_rate: int, streaming: bool) -> None:
        self._streaming, self._rate, self._samples = streaming, sample_rate, 0
        self._sink: _Pipe | _BytesFile = _Pipe() if streaming else _BytesFile()
        self._container = av.open(
            self._sink, "w", format=codec.container, container_options=codec.options
        )
        stream = self._container.add_stream(codec.name, rate=sample_rate, layout="mono")
        self._stream = cast(AudioStream, stream)
        if codec.bit_rate is not None:
            self._stream.bit_rate = codec.bit_rate

    def push(self, pcm: np.ndarray) -> bytes:
        """Encode little-endian int16 samples [n]."""
        if pcm.size:
            frame = AudioFrame.from_ndarray(pcm[None], "s16", "mono")
            frame.sample_rate, frame.pts = self._rate, self._samples
            self._samples += len(pcm)
            self._container.mux(self._stream.encode(frame))
        return self._sink.take() if self._streaming else b""

    def finish(self) -> bytes:
        """Return the rest of the file. Call once."""
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.take()
