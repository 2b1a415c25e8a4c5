"""Decode the bytes of an audio file to mono samples, with FFmpeg's libraries.

One decoder reads all formats. soundfile does not read m4a, and a second decoder would be a second
attack surface for hostile files.
"""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from av import AudioFrame, AudioStream
from av.container import InputContainer
from av.stream import Disposition

from sglang_omni.media.container import decode_frames, open_container
from sglang_omni.media.limits import MediaLimits
from sglang_omni.media.sinc import resample
from sglang_omni.protocol.errors import InvalidRequest

# Telephony uses 8 kHz and studios 192 kHz. Rates outside this range come from forged headers.
SAMPLE_RATE_RANGE_HZ = (4_000, 384_000)
# The first window of the mel spectrogram is mirrored at the start: half of its 400 samples plus 1.
MIN_SAMPLES = 201
# Loud float files exceed full scale, but not by 24 dB. Much larger values overflow in the mel.
MAX_MAGNITUDE = 16.0


def decode(data: bytes, limits: MediaLimits, sample_rate: int) -> np.ndarray:
    """Decode the first channel to float32 [samples] at `sample_rate` Hz, full scale at -1 and 1.

    The released model hears only the first channel; the others are not mixed in. Broken or
    truncated parts are left out, as media players do. Raises `InvalidRequest` for a clip that
    exceeds the limits, is too short for the mel, or has samples that are not finite or far above
    full scale.
    """
    rate, samples = _read(data, limits, is_cut=False)
    if not rate:
        raise InvalidRequest("the clip has no sound that can be decoded")
    check_samples(samples)
    samples = resample(samples, rate, sample_rate)
    if len(samples) < MIN_SAMPLES:
        min_ms = MIN_SAMPLES / sample_rate * 1000
        raise InvalidRequest(f"the clip is too short: it needs at least {min_ms:.1f} ms of sound")
    return samples


def decode_video_sound(data: bytes, limits: MediaLimits, sample_rate: int) -> np.ndarray:
    """Decode the sound of a video as `decode` does, up to the limit of seconds for audio.

    Returns no samples if the video has no sound, or one too short for the mel. Raises
    `InvalidRequest` for samples or a format that `decode` rejects.
    """
    with closing(open_container(data)) as container:
        if not container.streams.audio:
            return np.zeros(0, np.float32)
    rate, samples = _read(data, limits, is_cut=True)
    if rate:
        check_samples(samples)
        samples = resample(samples, rate, sample_rate)
    return samples if len(samples) >= MIN_SAMPLES else samples[:0]


def check_samples(samples: np.ndarray) -> None:
    """Raise `InvalidRequest` for samples that are not finite or far above full scale."""
    if not np.isfinite(samples).all():
        raise InvalidRequest("the clip has samples that are not finite")
    if np.abs(samples).max(initial=0.0) > MAX_MAGNITUDE:
        raise InvalidRequest(
            f"the clip has samples of more than {MAX_MAGNITUDE:g} times full scale"
        )


def _read(data: bytes, limits: MediaLimits, *, is_cut: bool) -> tuple[int, np.ndarray]:
    """Return the sample rate in Hz, 0 without samples, and the samples of the first channel.

    A sound beyond the limit of seconds is cut there, or raises `InvalidRequest`.
    """
    rate, num_samples = 0, 0
    chunks = [np.zeros(0, np.float32)]
    with closing(open_container(data)) as container:
        for frame in iterate_frames(container, limits):
            rate = frame.sample_rate
            num_samples += frame.samples
            chunks.append(first_channel(frame))
            # Counted while decoding: a header may declare less than the file contains.
            if num_samples > limits.audio_seconds * rate:
                if not is_cut:
                    raise InvalidRequest(f"the clip is longer than {limits.audio_seconds:g} s")
                break
    samples = np.concatenate(chunks)[: int(limits.audio_seconds * rate)]
    return rate if len(samples) else 0, samples


def iterate_frames(container: InputContainer, limits: MediaLimits) -> Iterator[AudioFrame]:
    """Yield the frames of the track that a player would play, all of the same sample rate.

    Raises `InvalidRequest` if a file has no sound, or an unsupported format.
    """
    if not container.streams.audio:
        raise InvalidRequest("the file has no sound")
    rate = 0
    for frame in decode_frames(container, _select_track(container)):
        rate = _check_format(frame, rate, limits)
        yield frame


def _select_track(container: InputContainer) -> AudioStream:
    """Return the default audio track, else the first one."""
    tracks = container.streams.audio
    return next((track for track in tracks if track.disposition & Disposition.default), tracks[0])


def _check_format(frame: AudioFrame, previous_rate: int, limits: MediaLimits) -> int:
    """Return the sample rate of a frame. Raises `InvalidRequest` for an unsupported format."""
    min_rate, max_rate = SAMPLE_RATE_RANGE_HZ
    rate, channels = frame.sample_rate, frame.layout.nb_channels
    if not min_rate <= rate <= max_rate:
        raise InvalidRequest(f"the clip has {rate} Hz; {min_rate} to {max_rate} Hz are supported")
    if previous_rate not in (0, rate):
        raise InvalidRequest(f"the clip changes its rate from {previous_rate} to {rate} Hz")
    if channels > limits.audio_channels:
        raise InvalidRequest(
            f"the clip has {channels} channels; at most {limits.audio_channels} are supported"
        )
    return rate


def first_channel(frame: AudioFrame) -> np.ndarray:
    """Return the float32 [samples] of a frame in any of FFmpeg's sample formats."""
    # [channels, samples] if planar, else [1, samples * channels] interleaved.
    array = frame.to_ndarray()
    values = array[0, :: 1 if frame.format.is_planar else frame.layout.nb_channels]
    if values.dtype == np.uint8:
        return (values.astype(np.float32) - 128) / 128
    if values.dtype.kind == "i":
        return (values / 2.0 ** (8 * values.dtype.itemsize - 1)).astype(np.float32)
    return values.astype(np.float32)
