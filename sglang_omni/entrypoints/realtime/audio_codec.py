"""Audio as it travels: base64 of one of three codings, to and from samples.

Inside, what the user says is int16 at 16 kHz, the rate of the voice activity detector and of the
model's ear; so a change of format is a change of decoder, and touches nothing that was heard.
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

# Rate of everything heard, in Hz.
HEARD_RATE = 16_000
SAMPLES_PER_MS = HEARD_RATE // 1000
# OpenAI's bound for one `input_audio_buffer.append`, in bytes of audio.
MOST_APPENDED = 15 << 20
# Characters of base64 that are decoded in one call.
_SLICE = 1 << 20


@dataclass(frozen=True)
class WireFormat:
    """A coding of mono audio; `bytes_per_sample` at `rate` Hz."""

    coding: Coding = "audio/pcm"

    @property
    def rate(self) -> int:
        """Samples a second."""
        return 24_000 if self.coding == "audio/pcm" else g711.RATE

    @property
    def bytes_per_sample(self) -> int:
        """Size of one sample."""
        return 2 if self.coding == "audio/pcm" else 1

    def milliseconds(self, size: int) -> float:
        """How long `size` bytes play."""
        return size / self.bytes_per_sample / self.rate * 1000

    def decode(self, data: bytes) -> np.ndarray:
        """Bytes to int16 [samples]. Raises `InvalidRequest` for half a sample."""
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
        """int16 [samples] to bytes."""
        match self.coding:
            case "audio/pcmu":
                return g711.linear_to_ulaw(samples)
            case "audio/pcma":
                return g711.linear_to_alaw(samples)
        return samples.astype("<i2").tobytes()

    def json(self) -> dict[str, object]:
        """The format as the session object has it."""
        rate = {"rate": self.rate} if self.coding == "audio/pcm" else {}
        return {"type": self.coding, **rate}


# What clients have unless they ask for something else.
PCM = WireFormat()


def from_base64(text: str, param: str = "audio") -> bytes:
    """The bytes of an event's audio. Raises `InvalidRequest`, naming the field `param`."""
    if len(text) > MOST_APPENDED // 3 * 4:
        raise InvalidRequest(f"{param}: an event may hold {MOST_APPENDED >> 20} MiB", param=param)
    try:
        return b"".join(_decoded_slices(text))
    except (binascii.Error, ValueError):
        raise InvalidRequest(f"{param}: is not valid base64", param=param) from None


def _decoded_slices(text: str) -> Iterator[bytes]:
    """The bytes of base64, a few milliseconds' work at a time. Raises `ValueError`."""
    for start in range(0, len(text), _SLICE):
        part = text[start : start + _SLICE]
        if start + _SLICE < len(text) and part.endswith("="):
            raise ValueError("the text goes on behind its end")
        yield base64.b64decode(part, validate=True)


def to_base64(data: bytes) -> str:
    """Bytes as an event carries them."""
    return base64.b64encode(data).decode("ascii")


class InputDecoder:
    """Decodes what a client sends to int16 [samples] at 16 kHz, chunk by chunk."""

    def __init__(self, wire: WireFormat) -> None:
        self.wire = wire
        self._resampler = Resampler(wire.rate, HEARD_RATE)

    def hear(self, data: bytes) -> np.ndarray:
        """What is settled by `data`; the filter holds a few milliseconds back.

        Raises `InvalidRequest` for half a sample.
        """
        return _quantised(self._resampler.push(_floats(self.wire.decode(data))))

    def rest(self) -> np.ndarray:
        """What the filter holds. Afterwards a new stream begins."""
        rest = _quantised(self._resampler.finish())
        self._resampler = Resampler(self.wire.rate, HEARD_RATE)
        return rest


class OutputEncoder:
    """Encodes the synthesis of one answer for its client, chunk by chunk."""

    def __init__(self, source_rate: int, wire: WireFormat, speed: float = 1.0) -> None:
        """`source_rate` in Hz; the answer is spoken at `speed` times its own."""
        self.wire = wire
        self._encoder = OutputAudioEncoder(
            "pcm", source_rate, wire.rate, streaming=True, speed=speed
        )
        self._samples_per_ms = source_rate * speed / 1000
        self._samples = 0

    @property
    def taken_ms(self) -> float:
        """How long all of the synthesis so far will play, of which the filters hold some back."""
        return self._samples / self._samples_per_ms

    async def speak(self, pcm: np.ndarray) -> bytes:
        """Encode float32 [samples]. Raises `EngineFailed` for samples that are not finite."""
        data = await self._encoder.encode(pcm)
        self._samples += len(pcm)
        return self._coded(data)

    async def rest(self) -> bytes:
        """What the filters hold. Call once, at the end."""
        return self._coded(await self._encoder.close())

    def _coded(self, data: bytes) -> bytes:
        return self.wire.encode(np.frombuffer(data, "<i2"))


def clip_uri(samples: np.ndarray) -> str:
    """int16 [samples] at 16 kHz as the data URI of a WAV file, as media enter the pipeline."""
    data = samples.astype("<i2").tobytes()
    return "data:audio/wav;base64," + to_base64(wav.header(HEARD_RATE, len(data)) + data)


def clip_samples(uri: str) -> np.ndarray:
    """The samples of a `clip_uri`."""
    data = base64.b64decode(uri.partition(",")[2])
    return np.frombuffer(data[wav.HEADER_BYTES :], "<i2")


def _floats(samples: np.ndarray) -> np.ndarray:
    return samples.astype(np.float32) / 32_768


def _quantised(pcm: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(pcm * 32_768, -32_768, 32_767)).astype(np.int16)
