"""Clips come out as the reference hears them, or not at all."""

import struct
import time

import numpy as np
import pytest
import torch

from sglang_omni.media import audio
from sglang_omni.media.limits import MediaLimits
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.files import LIMITS, clip, encoded, movie, picture, tone, wav
from tests.testing.golden import cases, file_of, load_case


def decode(data: bytes, limits: MediaLimits = LIMITS) -> np.ndarray:
    """The clip at 16 kHz."""
    return audio.decode(data, limits, 16_000)


@pytest.mark.parametrize("case", cases("audio", "clip_", required=False))
def test_clips_equal_the_reference(case: str) -> None:
    # clip_2 is stereo at 44.1 kHz: the reference hears its first channel only.
    golden = load_case(case)
    samples = decode(file_of(golden.info["wav_file"]).read_bytes())
    if not golden["waveform_16k"].is_floating_point():
        # Stored as the 16-bit file has it, to be small.
        samples = (samples * 2**15).astype(np.int16)
    golden.check("waveform_16k", torch.from_numpy(samples))


@pytest.mark.parametrize(
    ("form", "codec", "rate"),
    [
        ("mp3", "libmp3lame", 44_100),
        ("ogg", "libopus", 48_000),
        ("webm", "libopus", 48_000),
        ("mp4", "aac", 44_100),
        ("adts", "aac", 44_100),
        ("flac", "flac", 44_100),
        ("matroska", "pcm_f32le", 22_050),
    ],
)
@pytest.mark.parametrize("channels", [1, 2])
def test_formats_sound_alike(form: str, codec: str, rate: int, channels: int) -> None:
    samples = decode(clip(form, codec, tone(1.0, rate, channels), rate))
    assert len(samples) == pytest.approx(16_000, abs=1_600)
    spectrum = np.abs(np.fft.rfft(samples[4_000:12_000]))
    assert np.argmax(spectrum) * 2 == pytest.approx(440, abs=4)
    assert np.abs(samples[4_000:12_000]).max() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("subtype", "form", "error"),
    [
        ("PCM_U8", "WAV", 1e-2),
        ("PCM_16", "WAV", 4e-5),
        ("PCM_24", "WAV", 2e-7),
        ("PCM_32", "WAV", 1e-7),
        ("FLOAT", "WAV", 0),
        ("DOUBLE", "WAV", 0),
        ("PCM_16", "FLAC", 4e-5),
    ],
)
def test_full_scale_is_one_in_every_sample_format(subtype: str, form: str, error: float) -> None:
    original = np.hstack([tone(0.2), -tone(0.2)])
    samples = decode(wav(original, 16_000, subtype, form))
    assert np.abs(samples - original[:, 0]).max() <= error


def test_vorbis_is_read() -> None:
    original = tone(0.5)
    samples = decode(wav(original, 16_000, "VORBIS", "OGG"))
    assert np.abs(samples[: len(original)] - original[:, 0]).max() < 0.05


def test_samples_beyond_full_scale_are_kept() -> None:
    assert decode(wav(tone(0.1) * 4, subtype="FLOAT")).max() == pytest.approx(2.0, abs=1e-3)


def test_a_clip_is_as_long_as_allowed_and_no_longer() -> None:
    limits = MediaLimits(audio_seconds=0.5)
    assert len(decode(wav(tone(0.5)), limits)) == 8_000
    with pytest.raises(InvalidRequest, match=r"longer than 0\.5 s"):
        decode(wav(tone(0.51)), limits)


def test_an_hour_of_silence_in_a_small_file_is_refused_early() -> None:
    data = wav(np.zeros((3600 * 48_000, 1), np.int16), 48_000, form="FLAC")
    assert len(data) < 1 << 20
    began = time.process_time()
    with pytest.raises(InvalidRequest, match="longer than 300 s"):
        decode(data)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("rate", [1, 3_999, 384_001, 10_000_000])
def test_a_forged_rate_is_refused(rate: int) -> None:
    data = bytearray(wav(tone(0.5)))
    data[24:28] = struct.pack("<I", rate)
    with pytest.raises(InvalidRequest, match=f"{rate} Hz; 4000 to 384000 Hz are supported|header"):
        decode(bytes(data))


def test_more_channels_than_allowed_are_refused() -> None:
    assert len(decode(wav(tone(0.1, channels=8)))) == 1_600
    with pytest.raises(InvalidRequest, match="9 channels; at most 8"):
        decode(wav(tone(0.1, channels=9)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers_are_refused(value: float) -> None:
    samples = tone(0.1)
    samples[800] = value
    with pytest.raises(InvalidRequest, match="not finite"):
        decode(wav(samples, subtype="FLOAT"))


def test_samples_far_beyond_full_scale_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="more than 16 times full scale"):
        decode(wav(tone(0.1) * 1e30, subtype="FLOAT"))


def test_a_clip_needs_201_samples() -> None:
    assert len(decode(wav(np.ones((201, 1), np.float32)))) == 201
    with pytest.raises(InvalidRequest, match=r"too short: it needs at least 12\.6 ms"):
        decode(wav(np.ones((200, 1), np.float32)))


def test_a_clip_without_samples_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no sound that can be decoded"):
        decode(wav(np.zeros((0, 1), np.float32)))


def test_a_wav_that_promises_gigabytes_gives_what_it_has() -> None:
    data = bytearray(wav(tone(0.5)))
    at = data.index(b"data") + 4
    data[at : at + 4] = data[4:8] = struct.pack("<I", 0xFFFFFFF0)
    assert len(decode(bytes(data))) == 8_000


def test_half_an_mp3_gives_half_the_sound() -> None:
    data = clip("mp3", "libmp3lame", tone(2.0, 44_100), 44_100)
    assert 8_000 < len(decode(data[: len(data) // 2])) < 24_000


def test_a_video_without_sound_is_no_clip() -> None:
    with pytest.raises(InvalidRequest, match="the file has no sound"):
        decode(movie(5))


@pytest.mark.parametrize(
    "data", [b"", b"RIFF", b"some text", encoded(picture()), b"#EXTM3U\nfile:///etc/passwd\n"]
)
def test_what_is_no_sound_is_called_so(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"not an audio or video file|the file has no sound"):
        decode(data)
