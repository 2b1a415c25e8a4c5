"""Encoding and decoding of the audio in Realtime events: base64 of PCM16, mu-law or A-law.

Inside the server, user audio is int16 at 16 kHz, the rate of the voice activity detector and of the
audio encoder. A change of the client's format therefore only needs a new decoder; audio that was
received before stays as it is.
"""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sglang_omni.media import g711, wav
from sglang_omni.media.encode import OutputAudioEncoder
from sglang_omni.media.resample import Resampler
from sglang_omni.protocol.errors import InvalidRequest

Coding = Literal["audio/pcm", "audio/pcmu", "audio/pcma"]

# Sample rate of decoded user audio, in Hz.
INPUT_SAMPLE_RATE = 16_000
SAMPLES_PER_MS = INPUT_SAMPLE_RATE // 1000
# OpenAI's limit for one `input_audio_buffer.append`, in bytes of audio.
MAX_APPEND_BYTES = 15 << 20
# Characters of base64 to decode in one call.
_BASE64_CHUNK_CHARS = 1 << 20


@dataclass(frozen=True)
class WireFormat:
    """A coding of mono audio, as clients send and receive it."""

    coding: Coding = "audio/pcm"

    @property
    def sample_rate(self) -> int:
        """Return the sample rate in Hz."""
        return 24_000 if self.coding == "audio/pcm" else g711.RATE

    @property
    def bytes_per_sample(self) -> int:
        """Return the size of one sample in bytes."""
        return 2 if self.coding == "audio/pcm" else 1

    def duration_ms(self, num_bytes: int) -> float:
        """Return the playing time of `num_bytes` of audio in milliseconds."""
        return num_bytes / self.bytes_per_sample / self.sample_rate * 1000

    def decode(self, data: bytes) -> np.ndarray:
        """Decode bytes to int16 [samples].

        Raises:
            InvalidRequest: The data end in the middle of a sample.
        """
        match self.coding:
            case "audio/pcmu":
                return g711.ulaw_to_linear(data)
            case "audio/pcma":
                return g711.alaw_to_linear(data)
            case _ if len(data) % 2:
                raise InvalidRequest(
                    "audio: 16-bit samples need an even number of bytes", param="audio"
                )
        return np.frombuffer(data, "<i2")

    def encode(self, samples: np.ndarray) -> bytes:
        """Encode int16 [samples] to bytes."""
        match self.coding:
            case "audio/pcmu":
                return g711.linear_to_ulaw(samples)
            case "audio/pcma":
                return g711.linear_to_alaw(samples)
        return samples.astype("<i2").tobytes()

    def to_json(self) -> dict[str, object]:
        """Return the format as the session object shows it."""
        rate = {"rate": self.sample_rate} if self.coding == "audio/pcm" else {}
        return {"type": self.coding, **rate}


# The default format of both directions.
PCM = WireFormat()


def decode_base64(text: str, param: str = "audio") -> bytes:
    """Decode the base64 audio of an event.

    Raises:
        InvalidRequest: The audio is too long or not valid base64; `param` names the field.
    """
    if len(text) > MAX_APPEND_BYTES // 3 * 4:
        raise InvalidRequest(
            f"{param}: an event may hold {MAX_APPEND_BYTES >> 20} MiB", param=param
        )
    try:
        return b"".join(_decode_chunks(text))
    except (binascii.Error, ValueError):
        raise InvalidRequest(f"{param}: is not valid base64", param=param) from None


def _decode_chunks(text: str) -> Iterator[bytes]:
    """Decode base64 in chunks of a few milliseconds of work. Raises `ValueError`."""
    for start in range(0, len(text), _BASE64_CHUNK_CHARS):
        chunk = text[start : start + _BASE64_CHUNK_CHARS]
        if start + _BASE64_CHUNK_CHARS < len(text) and chunk.endswith("="):
            raise ValueError("there is text after the base64 padding")
        yield base64.b64decode(chunk, validate=True)


def encode_base64(data: bytes) -> str:
    """Encode bytes as base64 text for an event."""
    return base64.b64encode(data).decode("ascii")


class InputDecoder:
    """Decodes and resamples a client's audio to int16 [samples] at 16 kHz, chunk by chunk."""

    def __init__(self, wire: WireFormat) -> None:
        self.wire = wire
        self._resampler = Resampler(wire.sample_rate, INPUT_SAMPLE_RATE)

    def decode(self, data: bytes) -> np.ndarray:
        """Decode `data`. The resampling filter holds the last few milliseconds back.

        Raises:
            InvalidRequest: The data end in the middle of a sample.
        """
        return _to_int16(self._resampler.push(_to_float32(self.wire.decode(data))))

    def flush(self) -> np.ndarray:
        """Return the samples that the filter still holds, and start a new stream."""
        samples = _to_int16(self._resampler.finish())
        self._resampler = Resampler(self.wire.sample_rate, INPUT_SAMPLE_RATE)
        return samples


class OutputEncoder:
    """Encodes the synthesised speech of one response for its client, chunk by chunk."""

    def __init__(self, source_rate: int, wire: WireFormat, speed: float = 1.0) -> None:
        """Start an encoder.

        Args:
            source_rate: Sample rate of the synthesised speech, in Hz.
            wire: Format to send.
            speed: Playback speed relative to the synthesised speech.
        """
        self.wire = wire
        self._encoder = OutputAudioEncoder(
            "pcm", source_rate, wire.sample_rate, streaming=True, speed=speed
        )
        self._samples_per_ms = source_rate * speed / 1000
        self._samples = 0

    @property
    def duration_ms(self) -> float:
        """Return the playing time of all speech encoded so far, in milliseconds.

        It includes the few milliseconds that the filters still hold.
        """
        return self._samples / self._samples_per_ms

    async def encode(self, pcm: np.ndarray) -> bytes:
        """Encode float32 [samples].

        Raises:
            EngineFailed: A sample is not finite.
        """
        data = await self._encoder.encode(pcm)
        self._samples += len(pcm)
        return self._to_wire(data)

    async def flush(self) -> bytes:
        """Return the encoded samples that the filters still hold. Call it once, at the end."""
        return self._to_wire(await self._encoder.close())

    def _to_wire(self, data: bytes) -> bytes:
        return self.wire.encode(np.frombuffer(data, "<i2"))


def encode_wav(samples: np.ndarray) -> bytes:
    """Encode int16 [samples] at 16 kHz as a WAV file, the pipeline's input form."""
    data = samples.astype("<i2").tobytes()
    return wav.build_header(INPUT_SAMPLE_RATE, len(data)) + data


def decode_wav(data: bytes) -> np.ndarray:
    """Return the int16 [samples] of a file that `encode_wav` made."""
    return np.frombuffer(data[wav.HEADER_BYTES :], "<i2")


def _to_float32(samples: np.ndarray) -> np.ndarray:
    return samples.astype(np.float32) / 32_768


def _to_int16(pcm: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(pcm * 32_768, -32_768, 32_767)).astype(np.int16)
