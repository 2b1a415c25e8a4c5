"""Speech as samples to play."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

import numpy as np

from sglang_omni.media.encode import check_peak, create_tempo
from sglang_omni.media.limiter import PeakLimiter
from sglang_omni.media.tempo import convert_time
from sglang_omni.pipeline.request import AudioDelta, Event, TimedSegment


async def stream_samples(
    events: AsyncGenerator[Event, None],
    sample_rate: int,
    speed: float = 1.0,
    segments: list[TimedSegment] | None = None,
) -> AsyncGenerator[np.ndarray, None]:
    """Yield the speech of `events`, float32 [samples] in [-1, 1], none of them empty.

    Args:
        events: Events of a request.
        sample_rate: The rate of the samples in Hz, before and after.
        speed: Factor of the tempo.
        segments: Gets the segments of the speech, timed in the samples that are yielded.

    Raises:
        EngineFailed: Samples are not finite.
    """
    limiter = PeakLimiter(sample_rate)
    # To load and to run the filter takes longer than the event loop may wait.
    tempo = None if speed == 1 else await asyncio.to_thread(create_tempo, sample_rate, speed)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta):
                check_peak(event.pcm)
                pcm = event.pcm if tempo is None else await asyncio.to_thread(tempo.push, event.pcm)
                if pcm.size:
                    yield limiter.push(pcm)
            elif isinstance(event, TimedSegment) and segments is not None:
                convert = partial(convert_time, sample_rate=sample_rate, speed=speed)
                segments.append(event.convert_times(convert))
    if tempo is not None and (rest := await asyncio.to_thread(tempo.finish)).size:
        yield limiter.push(rest)


async def limit_audio(
    events: AsyncGenerator[Event, None], sample_rate: int
) -> AsyncGenerator[Event, None]:
    """Yield all events of an answer, with the speech limited to [-1, 1].

    Raises:
        EngineFailed: Samples are not finite.
    """
    limiter = PeakLimiter(sample_rate)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta):
                check_peak(event.pcm)
                yield AudioDelta(limiter.push(event.pcm))
            else:
                yield event
