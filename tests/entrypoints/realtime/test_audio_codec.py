"""Audio on the wire of a session: formats, rates, tempo and limits."""

import base64

import numpy as np
import pytest

from sglang_omni.entrypoints.realtime.audio_codec import (
    INPUT_SAMPLE_RATE,
    MAX_APPEND_BYTES,
    InputDecoder,
    OutputEncoder,
    WireFormat,
    decode_base64,
    decode_wav,
    encode_wav,
)
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from tests.testing.family import RATE

FORMATS = [WireFormat("audio/pcm"), WireFormat("audio/pcmu"), WireFormat("audio/pcma")]


def tone(rate: int, seconds: float = 0.5) -> np.ndarray:
    """440 Hz at a quarter of full scale, float32."""
    time = np.arange(int(seconds * rate)) / rate
    return (0.25 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)


def int16(samples: np.ndarray) -> np.ndarray:
    return np.rint(samples * 32_767).astype(np.int16)


@pytest.mark.parametrize("wire", FORMATS)
def test_decode_inverts_encode_of_the_wire_format(wire: WireFormat) -> None:
    decoder = InputDecoder(wire)
    data = wire.encode(int16(tone(wire.sample_rate)))
    decoded = np.concatenate((decoder.decode(data), decoder.flush())).astype(np.float32) / 32_768
    expected = tone(INPUT_SAMPLE_RATE)
    assert abs(len(decoded) - len(expected)) <= 1
    # The filter rings at the sudden ends; in between, G.711 has some 38 dB.
    middle = slice(1000, 7000)
    assert np.abs(decoded[middle] - expected[middle]).max() < 0.02


@pytest.mark.parametrize("wire", FORMATS)
async def test_encoded_speech_matches_its_source(wire: WireFormat) -> None:
    encoder = OutputEncoder(RATE, wire)
    data = await encoder.encode(tone(RATE)) + await encoder.flush()
    assert wire.duration_ms(len(data)) == pytest.approx(500, abs=0.2)
    middle = slice(wire.sample_rate // 10, wire.sample_rate * 4 // 10)
    sent = wire.decode(data)[middle].astype(np.float32) / 32_768
    assert np.abs(sent - tone(wire.sample_rate)[middle]).max() < 0.02


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("speed", [0.25, 0.8, 1.5])
async def test_speech_at_another_speed_is_as_much_longer_or_shorter(
    wire: WireFormat, speed: float
) -> None:
    encoder, pcm = OutputEncoder(RATE, wire, speed), tone(RATE)
    chunks = [await encoder.encode(pcm[at : at + 4096]) for at in range(0, len(pcm), 4096)]
    assert encoder.duration_ms == pytest.approx(500 / speed)
    data = b"".join((*chunks, await encoder.flush()))
    # The filter blends windows of some 20 ms, and ends in one.
    assert wire.duration_ms(len(data)) * speed == pytest.approx(500, abs=25)


@pytest.mark.parametrize("wire", FORMATS)
def test_decoding_does_not_depend_on_chunk_sizes(wire: WireFormat) -> None:
    data = wire.encode(int16(tone(wire.sample_rate)))
    whole, chunked = InputDecoder(wire), InputDecoder(wire)
    chunks = [chunked.decode(data[at : at + 480]) for at in range(0, len(data), 480)]
    decoded = np.concatenate((*chunks, chunked.flush()))
    expected = np.concatenate((whole.decode(data), whole.flush()))
    assert np.abs(decoded.astype(int) - expected).max() <= 1


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="even number of bytes"):
        InputDecoder(FORMATS[0]).decode(b"abc")


@pytest.mark.parametrize("speed", [1.0, 1.5])
async def test_samples_that_are_not_finite_are_not_sent(speed: float) -> None:
    with pytest.raises(EngineFailed):
        await OutputEncoder(RATE, FORMATS[0], speed).encode(np.array([0.0, np.nan], np.float32))


def test_base64_is_read_strictly_and_up_to_a_limit() -> None:
    assert decode_base64("AAEC") == b"\x00\x01\x02"
    for broken in ("AAE", "AA=C", "A A=", "ä"):
        with pytest.raises(InvalidRequest, match="not valid base64"):
            decode_base64(broken)
    assert (
        len(decode_base64(base64.b64encode(bytes(MAX_APPEND_BYTES)).decode())) == MAX_APPEND_BYTES
    )
    with pytest.raises(InvalidRequest, match="may hold 15 MiB"):
        decode_base64(base64.b64encode(bytes(MAX_APPEND_BYTES + 3)).decode())


def test_a_clip_is_a_wav_file_at_16_khz() -> None:
    samples = int16(tone(INPUT_SAMPLE_RATE))
    assert np.array_equal(decode_wav(encode_wav(samples)), samples)


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_loud_answer_is_not_clipped(wire: WireFormat) -> None:
    encoder = OutputEncoder(RATE, wire)
    data = await encoder.encode(6 * tone(RATE)) + await encoder.flush()
    assert 0.8 < np.abs(wire.decode(data) / 32_768).max() < 0.95
