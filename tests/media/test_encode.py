import io

import numpy as np
import pytest
import soundfile
import soxr

from sglang_omni.errors import EngineFailed
from sglang_omni.media.encode import AudioEncoder, AudioFormat, to_int16

PCM = (0.4 * np.sin(np.arange(30_000) / 17)).astype(np.float32)
CHUNKS = np.split(PCM, [1, 9000, 9000, 23_112])


def encode(encoder: AudioEncoder) -> list[bytes]:
    return [*map(encoder.push, CHUNKS), encoder.finish()]


@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_streamed_wav_pieces_joined_are_one_valid_file(rate: int) -> None:
    pieces = encode(AudioEncoder("wav", 44_100, rate, streaming=True))
    assert sum(piece.count(b"RIFF") for piece in pieces) == 1
    assert next(filter(None, pieces)).startswith(b"RIFF")
    samples, read_rate = soundfile.read(io.BytesIO(b"".join(pieces)), dtype="int16")
    assert read_rate == rate
    expected = PCM if rate == 44_100 else soxr.resample(PCM, 44_100, rate)
    assert samples.astype("<i2").tobytes() == to_int16(expected)


@pytest.mark.parametrize("audio_format", ["wav", "pcm"])
@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_streamed_samples_equal_the_complete_file(audio_format: AudioFormat, rate: int) -> None:
    skip = 44 if audio_format == "wav" else 0
    streamed = b"".join(encode(AudioEncoder(audio_format, 44_100, rate, streaming=True)))
    complete = b"".join(encode(AudioEncoder(audio_format, 44_100, rate, streaming=False)))
    assert len(streamed) - skip == 2 * round(len(PCM) * rate / 44_100)
    assert streamed[skip:] == complete[skip:]


def test_streaming_gives_bytes_before_the_end_and_a_complete_file_none() -> None:
    assert any(encode(AudioEncoder("pcm", 44_100, 24_000, streaming=True))[:-1])
    *early, last = encode(AudioEncoder("pcm", 44_100, 24_000, streaming=False))
    assert not any(early)
    assert last


def test_a_complete_wav_states_its_true_length() -> None:
    data = b"".join(encode(AudioEncoder("wav", 44_100, 44_100, streaming=False)))
    assert soundfile.info(io.BytesIO(data)).frames == len(PCM)


@pytest.mark.parametrize("streaming", [True, False])
def test_silence_of_no_length_is_a_valid_wav(streaming: bool) -> None:
    data = AudioEncoder("wav", 44_100, 44_100, streaming).finish()
    assert len(data) == 44
    assert data.startswith(b"RIFF")


def test_conversion_rounds_and_clips() -> None:
    pcm = np.array([0.0, 1.0, -1.0, 1.5, -7.0, 0.6 / 32767, -0.6 / 32767, 0.4 / 32767], np.float32)
    samples = np.frombuffer(to_int16(pcm), "<i2")
    assert samples.tolist() == [0, 32767, -32767, 32767, -32767, 1, -1, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_samples_that_are_not_finite_are_an_error(bad: float, rate: int) -> None:
    encoder = AudioEncoder("wav", 44_100, rate, streaming=True)
    with pytest.raises(EngineFailed, match="not finite"):
        encoder.push(np.array([0.1, bad], np.float32))
