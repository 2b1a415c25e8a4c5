"""Decode the bytes of an audio file to mono samples, with FFmpeg's libraries.

One decoder reads all formats. soundfile does not read m4a, and a second decoder would be a second
attack surface for hostile files.
"""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from av import AudioFrame

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
    rate, samples = _read(data, limits)
    if not np.isfinite(samples).all():
        raise InvalidRequest("the clip has samples that are not finite")
    if np.abs(samples).max(initial=0.0) > MAX_MAGNITUDE:
        raise InvalidRequest(
            f"the clip has samples of more than {MAX_MAGNITUDE:g} times full scale"
        )
    samples = resample(samples, rate, sample_rate)
    if len(samples) < MIN_SAMPLES:
        min_ms = MIN_SAMPLES / sample_rate * 1000
        raise InvalidRequest(f"the clip is too short: it needs at least {min_ms:.1f} ms of sound")
    return samples


def _read(data: bytes, limits: MediaLimits) -> tuple[int, np.ndarray]:
    """Return the sample rate in Hz and the samples of the first channel."""
    rate, num_samples = 0, 0
    chunks = [np.zeros(0, np.float32)]
    for frame in _frames(data):
        rate = _check_format(frame, rate, limits)
        num_samples += frame.samples
        # Counted while decoding: a header may declare less than the file contains.
        if num_samples > limits.audio_seconds * rate:
            raise InvalidRequest(f"the clip is longer than {limits.audio_seconds:g} s")
        chunks.append(_first_channel(frame))
    if not num_samples:
        raise InvalidRequest("the clip has no sound that can be decoded")
    return rate, np.concatenate(chunks)


def _frames(data: bytes) -> Iterator[AudioFrame]:
    with closing(open_container(data)) as container:
        if not container.streams.audio:
            raise InvalidRequest("the file has no sound")
        yield from decode_frames(container, container.streams.audio[0])


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


def _first_channel(frame: AudioFrame) -> np.ndarray:
    """Return the float32 [samples] of a frame in any of FFmpeg's sample formats."""
    # [channels, samples] if planar, else [1, samples * channels] interleaved.
    array = frame.to_ndarray()
    values = array[0, :: 1 if frame.format.is_planar else frame.layout.nb_channels]
    if values.dtype == np.uint8:
        return (values.astype(np.float32) - 128) / 128
    if values.dtype.kind == "i":
        return (values / 2.0 ** (8 * values.dtype.itemsize - 1)).astype(np.float32)
    return values.astype(np.float32)
