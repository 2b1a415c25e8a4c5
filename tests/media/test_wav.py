"""WAV headers: true sizes, and the unknown size of a stream."""

import io
import wave

import numpy as np
import pytest
import soundfile

from sglang_omni.media import wav

SAMPLES = (np.arange(-500, 500) * 60).astype("<i2")


@pytest.mark.parametrize("rate", [8000, 24_000, 44_100])
def test_a_file_with_true_sizes_reads_back_exactly(rate: int) -> None:
    data = wav.build_header(rate, SAMPLES.nbytes) + SAMPLES.tobytes()
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (rate, 1, 2)
        assert file.getnframes() == len(SAMPLES)
        assert file.readframes(len(SAMPLES)) == SAMPLES.tobytes()


def test_a_header_is_44_bytes_and_counts_what_follows_it() -> None:
    head = wav.build_header(44_100, SAMPLES.nbytes)
    assert len(head) == wav.HEADER_BYTES
    assert int.from_bytes(head[4:8], "little") == len(head) + SAMPLES.nbytes - 8
    assert int.from_bytes(head[40:44], "little") == SAMPLES.nbytes


def test_a_streamed_file_reads_to_its_end() -> None:
    head = wav.build_header(44_100, None)
    assert head[4:8] == head[40:44] == b"\xff\xff\xff\xff"
    samples, rate = soundfile.read(io.BytesIO(head + SAMPLES.tobytes()), dtype="int16")
    assert rate == 44_100
    np.testing.assert_array_equal(samples, SAMPLES)
