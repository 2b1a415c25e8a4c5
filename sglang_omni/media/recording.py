"""Read a recording of any length in steps, find its spans of speech, and keep its samples.

The samples go to a file, so that the memory does not grow with the length.
"""

from collections.abc import Generator
from contextlib import closing
from typing import BinaryIO

import numpy as np

from sglang_omni.media.audio import check_samples, first_channel, iterate_frames
from sglang_omni.media.container import open_container
from sglang_omni.media.encode import to_int16_array
from sglang_omni.media.limits import MediaLimits
from sglang_omni.media.resample import Resampler
from sglang_omni.media.speech_spans import CutRules, RecordingProgress, SpanFinder, SpeechSpan
from sglang_omni.media.vad import FRAME, SAMPLE_RATE, SPEECH_PROBABILITY, SileroDetector
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest

# Seconds of sound that one step reads. It takes one core about 0.2 s.
STEP_S = 20


class RecordingReader:
    """Reads one recording and writes it to a file: int16 samples, mono, 16 kHz."""

    def __init__(
        self, source: BinaryIO, sink: BinaryIO, rules: CutRules, limits: MediaLimits
    ) -> None:
        self._chunks = _decode(source, limits)
        self._sink, self._rules = sink, rules
        self._detector, self._finder = SileroDetector(), SpanFinder(rules)
        self._num_samples = 0
        self._has_speech = False
        # Spans of a recording that may yet turn out to be short.
        self._held: list[SpeechSpan] = []

    def step(self) -> RecordingProgress:
        """Read about `STEP_S` seconds.

        Raises:
            InvalidRequest: The file has no sound, is too long or has impossible samples.
            EngineFailed: The samples cannot be stored.
        """
        until = self._num_samples + STEP_S * SAMPLE_RATE
        while self._num_samples < until:
            chunk = next(self._chunks, None)
            if chunk is None:
                return self._finish()
            self._take(chunk)
        seconds = self._num_samples / SAMPLE_RATE
        if seconds <= self._rules.whole_s:
            return RecordingProgress(seconds, ())
        return RecordingProgress(seconds, self._release())

    def close(self) -> None:
        """Close both files."""
        self._chunks.close()
        self._sink.close()

    def _take(self, samples: np.ndarray) -> None:
        self._store(samples)
        probabilities = self._detector.push(samples)
        self._has_speech |= max(probabilities, default=0.0) >= SPEECH_PROBABILITY
        self._held += self._finder.push(probabilities)

    def _finish(self) -> RecordingProgress:
        if not self._num_samples:
            raise InvalidRequest("the clip has no sound that can be decoded")
        seconds = self._num_samples / SAMPLE_RATE
        # Padding completes the last frame.
        probabilities = self._detector.push(np.zeros(FRAME, np.int16))
        self._has_speech |= max(probabilities, default=0.0) >= SPEECH_PROBABILITY
        self._held += [*self._finder.push(probabilities), *self._finder.finish()]
        if seconds > self._rules.whole_s:
            return RecordingProgress(seconds, self._release(), last=True)
        whole = SpeechSpan(0.0, seconds, 0.0, seconds, 1.0)
        return RecordingProgress(
            seconds, (whole,) if self._has_speech else (), is_whole=True, last=True
        )

    def _store(self, samples: np.ndarray) -> None:
        self._num_samples += len(samples)
        try:
            self._sink.write(samples.tobytes())
        except OSError as error:
            raise EngineFailed(f"a recording cannot be stored: {error.strerror}") from error

    def _release(self) -> tuple[SpeechSpan, ...]:
        spans, self._held = tuple(self._held), []
        return spans


def _decode(source: BinaryIO, limits: MediaLimits) -> Generator[np.ndarray, None, None]:
    """Yield the first channel in chunks of int16 samples at 16 kHz."""
    resampler: Resampler | None = None
    num_read = 0
    with closing(source), closing(open_container(source)) as container:
        for frame in iterate_frames(container, limits):
            if resampler is None:
                resampler = Resampler(frame.sample_rate, SAMPLE_RATE)
            num_read += frame.samples
            if num_read > limits.recording_seconds * frame.sample_rate:
                raise InvalidRequest(f"the recording is longer than {limits.recording_seconds:g} s")
            samples = first_channel(frame)
            check_samples(samples)
            yield to_int16_array(resampler.push(samples))
    if resampler is not None:
        yield to_int16_array(resampler.finish())
