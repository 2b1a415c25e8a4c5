"""Audio files: streamed and complete, in every format."""

import io
import math
from typing import get_args

import av
import numpy as np
import pytest
import soundfile
import soxr

from sglang_omni.media.encode import OutputAudioEncoder, to_int16_bytes
from sglang_omni.media.stretch import TimeStretch
from sglang_omni.media.tempo import split_speed
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.errors import EngineFailed

PCM = (0.4 * np.sin(np.arange(30_000) / 17)).astype(np.float32)
CHUNKS = np.split(PCM, [1, 9000, 9000, 23_112])


def encode(encoder: OutputAudioEncoder) -> list[bytes]:
    return [*map(encoder.push, CHUNKS), encoder.finish()]


@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_streamed_wav_pieces_joined_are_one_valid_file(rate: int) -> None:
    pieces = encode(OutputAudioEncoder("wav", 44_100, rate, streaming=True))
    assert sum(piece.count(b"RIFF") for piece in pieces) == 1
    assert next(filter(None, pieces)).startswith(b"RIFF")
    samples, read_rate = soundfile.read(io.BytesIO(b"".join(pieces)), dtype="int16")
    assert read_rate == rate
    expected = PCM if rate == 44_100 else soxr.resample(PCM, 44_100, rate)
    assert samples.astype("<i2").tobytes() == to_int16_bytes(expected)


@pytest.mark.parametrize("audio_format", ["wav", "pcm"])
@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_streamed_samples_equal_the_complete_file(audio_format: AudioFormat, rate: int) -> None:
    skip = 44 if audio_format == "wav" else 0
    streamed = b"".join(encode(OutputAudioEncoder(audio_format, 44_100, rate, streaming=True)))
    complete = b"".join(encode(OutputAudioEncoder(audio_format, 44_100, rate, streaming=False)))
    assert len(streamed) - skip == 2 * round(len(PCM) * rate / 44_100)
    assert streamed[skip:] == complete[skip:]


def test_streaming_gives_bytes_before_the_end_and_a_complete_file_none() -> None:
    assert any(encode(OutputAudioEncoder("pcm", 44_100, 24_000, streaming=True))[:-1])
    *early, last = encode(OutputAudioEncoder("pcm", 44_100, 24_000, streaming=False))
    assert not any(early)
    assert last


def test_a_complete_wav_states_its_true_length() -> None:
    data = b"".join(encode(OutputAudioEncoder("wav", 44_100, 44_100, streaming=False)))
    assert soundfile.info(io.BytesIO(data)).frames == len(PCM)


@pytest.mark.parametrize("streaming", [True, False])
def test_silence_of_no_length_is_a_valid_wav(streaming: bool) -> None:
    data = OutputAudioEncoder("wav", 44_100, 44_100, streaming).finish()
    assert len(data) == 44
    assert data.startswith(b"RIFF")


def test_conversion_rounds_and_clips() -> None:
    pcm = np.array([0.0, 1.0, -1.0, 1.5, -7.0, 0.6 / 32767, -0.6 / 32767, 0.4 / 32767], np.float32)
    samples = np.frombuffer(to_int16_bytes(pcm), "<i2")
    assert samples.tolist() == [0, 32767, -32767, 32767, -32767, 1, -1, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_samples_that_are_not_finite_are_an_error(bad: float, rate: int) -> None:
    encoder = OutputAudioEncoder("wav", 44_100, rate, streaming=True)
    with pytest.raises(EngineFailed, match="not finite"):
        encoder.push(np.array([0.1, bad], np.float32))


def read_any(data: bytes) -> tuple[np.ndarray, int]:
    """Mono float32 samples and rate of a file in any format."""
    with av.open(io.BytesIO(data), "r") as container:
        frames = list(container.decode(audio=0))
    resampler = av.AudioResampler("flt", "mono")
    pieces = [out.to_ndarray()[0] for frame in frames for out in resampler.resample(frame)]
    return np.concatenate(pieces), frames[0].sample_rate


def dominant_hz(pcm: np.ndarray, rate: int) -> float:
    """The loudest frequency."""
    spectrum = np.abs(np.fft.rfft(pcm * np.hanning(len(pcm))))
    return float(spectrum.argmax() * rate / len(pcm))


def a_tone(seconds: float, hz: float = 440.0, rate: int = 44_100) -> np.ndarray:
    time = np.arange(int(seconds * rate)) / rate
    return (0.4 * np.sin(2 * np.pi * hz * time)).astype(np.float32)


COMPRESSED: dict[AudioFormat, int] = {"mp3": 44_100, "opus": 48_000, "aac": 44_100, "flac": 44_100}


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("audio_format", COMPRESSED)
def test_a_compressed_file_sounds_as_what_went_in(
    audio_format: AudioFormat, streaming: bool
) -> None:
    rate, pcm = COMPRESSED[audio_format], a_tone(1.5)
    encoder = OutputAudioEncoder(audio_format, 44_100, rate, streaming)
    chunks = [encoder.push(pcm[at : at + 14_112]) for at in range(0, len(pcm), 14_112)]
    data = b"".join((*chunks, encoder.finish()))
    assert any(chunks) == streaming
    heard, heard_rate = read_any(data)
    assert heard_rate == rate
    assert abs(len(heard) / rate - 1.5) < 0.08
    assert abs(dominant_hz(heard, rate) - 440) < 2
    assert 0.2 < np.abs(heard[rate // 2 : rate]).max() < 0.6


def test_a_whole_flac_tells_its_length_and_loses_nothing() -> None:
    pcm = a_tone(0.5)
    encoder = OutputAudioEncoder("flac", 44_100, 44_100, streaming=False)
    encoder.push(pcm)
    samples, _ = soundfile.read(io.BytesIO(encoder.finish()), dtype="int16")
    assert np.array_equal(samples.astype("<i2").tobytes(), to_int16_bytes(pcm))


@pytest.mark.parametrize("speed", [0.25, 0.5, 0.8, 1.5, 2.0, 3.0, 4.0])
def test_speed_changes_the_length_and_not_the_pitch(speed: float) -> None:
    pcm = a_tone(2.0)
    encoder = OutputAudioEncoder("pcm", 44_100, 44_100, streaming=True, speed=speed)
    pieces = [encoder.push(pcm[at : at + 5_000]) for at in range(0, len(pcm), 5_000)]
    heard = np.frombuffer(b"".join((*pieces, encoder.finish())), "<i2") / 32767
    assert abs(len(heard) / len(pcm) * speed - 1) < 0.06
    assert abs(dominant_hz(heard, 44_100) - 440) < 5


@pytest.mark.parametrize("speed", [0.25, 0.8, 1.5, 4.0])
def test_a_changed_tempo_is_heard_with_the_first_patch(speed: float) -> None:
    stretch, pcm = TimeStretch(44_100, speed), a_tone(0.32)
    behind = 0.32 - len(stretch.push(pcm)) / 44_100 * speed
    assert behind < 0.2
    later = [len(stretch.push(pcm)) for _ in range(20)]
    assert sum(later) / 44_100 * speed == pytest.approx(20 * 0.32, abs=0.1)


@pytest.mark.parametrize("speed", [0.25, 0.7, 1.3, 2.0])
def test_chunks_make_no_difference_to_a_changed_tempo(speed: float) -> None:
    pcm = np.random.default_rng(0).normal(0, 0.1, 40_000).astype(np.float32)

    def stretched(size: int) -> np.ndarray:
        stretch = TimeStretch(44_100, speed)
        parts = [stretch.push(pcm[at : at + size]) for at in range(0, len(pcm), size)]
        return np.concatenate((*parts, stretch.finish()))

    assert np.array_equal(stretched(1_000), stretched(40_000))


@pytest.mark.parametrize("speed", [0.25, 0.3, 0.5, 1.0, 1.7, 2.0, 2.5, 4.0])
def test_no_filter_is_asked_for_more_than_it_does_well(speed: float) -> None:
    chain = split_speed(speed)
    assert all(0.5 <= factor <= 2.0 for factor in chain)
    assert math.prod(chain) == pytest.approx(speed)


def a_loud_voice() -> np.ndarray:
    """Two seconds of a sawtooth that swells up to 2.5 times full scale, as a talker's cry may."""
    time = np.arange(2 * 44_100) / 44_100
    saw = sum(np.sin(2 * np.pi * 140 * k * time) / k for k in range(1, 40))
    return (saw / np.abs(saw).max() * 2.5 * np.sin(np.pi * time / 2)).astype(np.float32)


LOUD = {
    "wav": (44_100, 24_000),
    "pcm": (24_000, 16_000),
    **{k: (v,) for k, v in COMPRESSED.items()},
}


@pytest.mark.parametrize("speed", [1.0, 0.8])
@pytest.mark.parametrize(
    ("audio_format", "rate"), [(name, rate) for name, rates in LOUD.items() for rate in rates]
)
def test_no_format_clips_a_loud_voice(audio_format: AudioFormat, rate: int, speed: float) -> None:
    """Not even where it is decoded: a lossy codec adds a little to a peak."""
    encoder = OutputAudioEncoder(audio_format, 44_100, rate, streaming=True, speed=speed)
    pcm = a_loud_voice()
    chunks = [encoder.push(pcm[at : at + 14_112]) for at in range(0, len(pcm), 14_112)]
    data = b"".join((*chunks, encoder.finish()))
    if audio_format == "pcm":
        heard = np.frombuffer(data, "<i2") / 32_768
    else:
        heard, _ = read_any(data)
    lossless = audio_format in ("wav", "pcm", "flac")
    assert 0.8 < np.abs(heard).max() < (0.9 if lossless else 1.0)


@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_a_loud_stream_equals_the_complete_file(rate: int) -> None:
    pcm, files = a_loud_voice(), []
    for size in (3_000, len(pcm)):
        encoder = OutputAudioEncoder("pcm", 44_100, rate, streaming=True)
        chunks = [encoder.push(pcm[at : at + size]) for at in range(0, len(pcm), size)]
        files.append(b"".join((*chunks, encoder.finish())))
    assert files[0] == files[1]


def test_nothing_spoken_is_an_empty_file_in_every_format() -> None:
    for audio_format in get_args(AudioFormat):
        encoder = OutputAudioEncoder(audio_format, 44_100, 48_000, True, speed=2.0)
        encoder.finish()
