import base64

import numpy as np
import pytest

from sglang_omni.entrypoints.realtime.audio_codec import (
    HEARD_RATE,
    MOST_APPENDED,
    InputDecoder,
    OutputEncoder,
    WireFormat,
    clip_samples,
    clip_uri,
    from_base64,
)
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest

FORMATS = [WireFormat("audio/pcm"), WireFormat("audio/pcmu"), WireFormat("audio/pcma")]


def tone(rate: int, seconds: float = 0.5) -> np.ndarray:
    """440 Hz at a quarter of full scale, float32."""
    time = np.arange(int(seconds * rate)) / rate
    return (0.25 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)


def int16(samples: np.ndarray) -> np.ndarray:
    return np.rint(samples * 32_767).astype(np.int16)


@pytest.mark.parametrize("wire", FORMATS)
def test_what_is_sent_is_heard(wire: WireFormat) -> None:
    ear = InputDecoder(wire)
    data = wire.encode(int16(tone(wire.rate)))
    heard = np.concatenate((ear.hear(data), ear.rest())).astype(np.float32) / 32_768
    expected = tone(HEARD_RATE)
    assert abs(len(heard) - len(expected)) <= 1
    # The filter rings at the sudden ends; in between, G.711 has some 38 dB.
    middle = slice(1000, 7000)
    assert np.abs(heard[middle] - expected[middle]).max() < 0.02


@pytest.mark.parametrize("wire", FORMATS)
async def test_what_is_spoken_is_sent(wire: WireFormat) -> None:
    mouth = OutputEncoder(44_100, wire)
    data = await mouth.speak(tone(44_100)) + await mouth.rest()
    assert wire.milliseconds(len(data)) == pytest.approx(500, abs=0.2)
    middle = slice(wire.rate // 10, wire.rate * 4 // 10)
    sent = wire.decode(data)[middle].astype(np.float32) / 32_768
    assert np.abs(sent - tone(wire.rate)[middle]).max() < 0.02


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("speed", [0.25, 0.8, 1.5])
async def test_speech_at_another_speed_is_as_much_longer_or_shorter(
    wire: WireFormat, speed: float
) -> None:
    mouth, pcm = OutputEncoder(44_100, wire, speed), tone(44_100)
    pieces = [await mouth.speak(pcm[at : at + 4096]) for at in range(0, len(pcm), 4096)]
    assert mouth.taken_ms == pytest.approx(500 / speed)
    data = b"".join((*pieces, await mouth.rest()))
    # The filter blends windows of some 20 ms, and ends in one.
    assert wire.milliseconds(len(data)) * speed == pytest.approx(500, abs=25)


@pytest.mark.parametrize("wire", FORMATS)
def test_it_makes_no_difference_how_speech_is_cut(wire: WireFormat) -> None:
    data = wire.encode(int16(tone(wire.rate)))
    whole, cut = InputDecoder(wire), InputDecoder(wire)
    pieces = [cut.hear(data[at : at + 480]) for at in range(0, len(data), 480)]
    heard = np.concatenate((*pieces, cut.rest()))
    expected = np.concatenate((whole.hear(data), whole.rest()))
    assert np.abs(heard.astype(int) - expected).max() <= 1


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="even number of bytes"):
        InputDecoder(FORMATS[0]).hear(b"abc")


@pytest.mark.parametrize("speed", [1.0, 1.5])
async def test_samples_that_are_not_finite_are_not_sent(speed: float) -> None:
    with pytest.raises(EngineFailed):
        await OutputEncoder(44_100, FORMATS[0], speed).speak(np.array([0.0, np.nan], np.float32))


def test_base64_is_read_strictly_and_up_to_a_limit() -> None:
    assert from_base64("AAEC") == b"\x00\x01\x02"
    for broken in ("AAE", "AA=C", "A A=", "ä"):
        with pytest.raises(InvalidRequest, match="not valid base64"):
            from_base64(broken)
    assert len(from_base64(base64.b64encode(bytes(MOST_APPENDED)).decode())) == MOST_APPENDED
    with pytest.raises(InvalidRequest, match="may hold 15 MiB"):
        from_base64(base64.b64encode(bytes(MOST_APPENDED + 3)).decode())


def test_a_clip_is_a_wav_file_at_the_rate_of_the_ear() -> None:
    samples = int16(tone(HEARD_RATE))
    assert np.array_equal(clip_samples(clip_uri(samples)), samples)


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_loud_answer_is_not_clipped(wire: WireFormat) -> None:
    mouth = OutputEncoder(44_100, wire)
    data = await mouth.speak(6 * tone(44_100)) + await mouth.rest()
    assert 0.8 < np.abs(wire.decode(data) / 32_768).max() < 0.95
