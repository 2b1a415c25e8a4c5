"""The bytes of one clip to mono samples, by FFmpeg's libraries.

One decoder reads every format: soundfile knows no m4a, and a second decoder would be a second
surface for hostile files.
"""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from av import AudioFrame

from sglang_omni.media.container import decoded, open_container
from sglang_omni.media.limits import MediaLimits
from sglang_omni.media.sinc import resample
from sglang_omni.protocol.errors import InvalidRequest

# Telephones are at 8 kHz, studios at 192; beyond is a forged header.
RATES_HZ = (4_000, 384_000)
# The mel's first window is mirrored at the clip's start: half of its 400 samples, and one more.
LEAST_SAMPLES = 201
# Loud float files exceed full scale, none by 24 dB. What is far beyond overflows in the mel.
LOUDEST = 16.0


def decode(data: bytes, limits: MediaLimits, sample_rate: int) -> np.ndarray:
    """The first channel as float32 [samples] at `sample_rate` Hz, full scale at -1 and 1.

    The released model listens to the first channel only; the others are not mixed in. What is
    broken or cut off is left out, as players do. Raises `InvalidRequest` for a clip beyond the
    limits, one too short for the mel, and one whose samples are not numbers on that scale.
    """
    rate, samples = _read(data, limits)
    if not np.isfinite(samples).all():
        raise InvalidRequest("the clip has samples that are not finite")
    if np.abs(samples).max(initial=0.0) > LOUDEST:
        raise InvalidRequest(f"the clip has samples of more than {LOUDEST:g} times full scale")
    samples = resample(samples, rate, sample_rate)
    if len(samples) < LEAST_SAMPLES:
        least_ms = LEAST_SAMPLES / sample_rate * 1000
        raise InvalidRequest(f"the clip is too short: it needs at least {least_ms:.1f} ms of sound")
    return samples


def _read(data: bytes, limits: MediaLimits) -> tuple[int, np.ndarray]:
    """The rate in Hz and the samples of the first channel."""
    rate, count = 0, 0
    chunks = [np.zeros(0, np.float32)]
    for frame in _frames(data):
        rate = _checked_rate(frame, rate, limits)
        count += frame.samples
        # Counted as they come: a header may promise less than the file unfolds to.
        if count > limits.audio_seconds * rate:
            raise InvalidRequest(f"the clip is longer than {limits.audio_seconds:g} s")
        chunks.append(_first_channel(frame))
    if not count:
        raise InvalidRequest("the clip has no sound that can be decoded")
    return rate, np.concatenate(chunks)


def _frames(data: bytes) -> Iterator[AudioFrame]:
    with closing(open_container(data)) as container:
        if not container.streams.audio:
            raise InvalidRequest("the file has no sound")
        yield from decoded(container, container.streams.audio[0])


def _checked_rate(frame: AudioFrame, before: int, limits: MediaLimits) -> int:
    least, most = RATES_HZ
    rate, channels = frame.sample_rate, frame.layout.nb_channels
    if not least <= rate <= most:
        raise InvalidRequest(f"the clip has {rate} Hz; {least} to {most} are read")
    if before not in (0, rate):
        raise InvalidRequest(f"the clip changes its rate from {before} to {rate} Hz")
    if channels > limits.audio_channels:
        raise InvalidRequest(
            f"the clip has {channels} channels; at most {limits.audio_channels} are read"
        )
    return rate


def _first_channel(frame: AudioFrame) -> np.ndarray:
    """Float32 [samples] of a frame in any of FFmpeg's sample formats."""
    # [channels, samples], or [1, samples * channels] where the channels alternate.
    table = frame.to_ndarray()
    values = table[0, :: 1 if frame.format.is_planar else frame.layout.nb_channels]
    if values.dtype == np.uint8:
        return (values.astype(np.float32) - 128) / 128
    if values.dtype.kind == "i":
        return (values / 2.0 ** (8 * values.dtype.itemsize - 1)).astype(np.float32)
    return values.astype(np.float32)
