"""Audio of an answer as it arrives: 16-bit mono samples, bare or after WAV headers."""

import struct

from benchmarks.client.playback import AudioChunk, Playback
from sglang_omni.media.wav import BYTES_PER_SAMPLE

# The rate of `pcm` in OpenAI's API; a server that sends another rate announces it.
PCM_RATE = 24_000
# Longer data without a `data` chunk is not a WAV header.
MAX_HEADER_BYTES = 4096
_RIFF, _DATA = b"RIFF", b"data"


class AudioReceiver:
    """Turn the bytes of one answer into playback; `keep` keeps the samples.

    `rate` is in Hz, for samples without a WAV header. Headers are removed, wherever the stream
    splits them. A header may start the stream, or a piece received with `begins`.
    """

    def __init__(self, rate: int = PCM_RATE, keep: bool = False) -> None:
        self.rate, self._keep = rate, keep
        self._head: bytes | None = b""
        self.samples = bytearray()
        self.first_at_s: float | None = None
        self.playback = Playback()

    def receive(self, data: bytes, at_s: float, begins: bool = False) -> None:
        """Receive bytes that arrived at `at_s`. With `begins` a file of its own may start here.

        Raises:
            ValueError: The WAV is not 16-bit mono.
        """
        if begins and self._head is None and data.startswith(_RIFF):
            self._head = b""
        if self._head is not None:
            data = self._past_header(self._head + data)
        if not data:
            return
        if self.first_at_s is None:
            self.first_at_s = at_s
        audio_s = len(data) / (self.rate * BYTES_PER_SAMPLE)
        self.playback = self.playback.add(AudioChunk(at_s, audio_s))
        if self._keep:
            self.samples += data

    def _past_header(self, data: bytes) -> bytes:
        """Return what follows the header, once it is complete; buffer an incomplete one."""
        if not _RIFF.startswith(data[:4]):
            self._head = None
            return data
        at = data.find(_DATA, 36)
        if at < 0 or len(data) < at + 8:
            if len(data) > MAX_HEADER_BYTES:
                raise ValueError("a WAV header without data")
            self._head = data
            return b""
        channels, rate = struct.unpack_from("<HI", data, 22)
        (bits,) = struct.unpack_from("<H", data, 34)
        if (channels, bits) != (1, 8 * BYTES_PER_SAMPLE):
            raise ValueError(f"WAV of {channels} channels with {bits} bits, not of one with 16")
        self.rate, self._head = rate, None
        return data[at + 8 :]
