"""Buffers the user's audio and detects turns in it."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import replace

import numpy as np

from sglang_omni.entrypoints.realtime.audio_codec import SAMPLES_PER_MS, InputDecoder, WireFormat
from sglang_omni.entrypoints.realtime.turn_detection import (
    TurnEvent,
    TurnRules,
    TurnState,
    reset_turn,
    step,
)
from sglang_omni.media.vad import FRAME_MS, Detector
from sglang_omni.protocol.errors import InvalidRequest

# Audio to process in one step; between two steps the event loop runs.
CHUNK_MS = 1000
# OpenAI's minimum length of a turn.
MIN_COMMIT_MS = 100
_EMPTY = np.zeros(0, np.int16)


class BufferEmpty(InvalidRequest):
    """The buffer holds too little audio for a turn."""

    code = "input_audio_buffer_commit_empty"


class BufferFull(InvalidRequest):
    """The buffer holds a turn of the maximum length."""

    code = "input_audio_buffer_full"


class AudioBuffer:
    """int16 samples at 16 kHz, addressed by the time since the session's audio started.

    The samples stay in the chunks that they arrived in, so that an append does not copy the turn.
    """

    def __init__(self) -> None:
        self._chunks: deque[np.ndarray] = deque()
        self._start = 0
        self._end = 0

    @property
    def start_ms(self) -> int:
        """Return the time of the oldest sample."""
        return self._start // SAMPLES_PER_MS

    @property
    def end_ms(self) -> int:
        """Return the time after the newest sample."""
        return self._end // SAMPLES_PER_MS

    def append(self, samples: np.ndarray) -> None:
        """Append samples."""
        self._chunks.append(samples)
        self._end += len(samples)

    def read(self, start_ms: int, end_ms: int) -> np.ndarray:
        """Return a copy of the samples between two times, as far as they are in the buffer."""
        first, last = (max(ms * SAMPLES_PER_MS - self._start, 0) for ms in (start_ms, end_ms))
        return np.concatenate((_EMPTY, *self._chunks))[first:last].copy()

    def discard(self, before_ms: int) -> None:
        """Discard the samples before a time."""
        count = min(max(before_ms * SAMPLES_PER_MS - self._start, 0), self._end - self._start)
        self._start += count
        while count:
            chunk = self._chunks.popleft()
            if len(chunk) > count:
                self._chunks.appendleft(chunk[count:].copy())
            count -= min(len(chunk), count)


class InputAudioBuffer:
    """Holds the audio that is not committed yet. Only one task may call `append` at a time."""

    def __init__(self, wire: WireFormat, detector: Detector, max_turn_ms: int) -> None:
        """Create an empty buffer.

        Args:
            wire: Format of the client's audio.
            detector: Estimates the probability of speech in each frame.
            max_turn_ms: Maximum length of a turn, and of the audio in the buffer.
        """
        self._decoder, self._detector, self._max_turn_ms = InputDecoder(wire), detector, max_turn_ms
        self._buffer = AudioBuffer()
        self._state = TurnState()
        self._rules: TurnRules | None = None

    @property
    def received_ms(self) -> int:
        """Return the length of all audio of this session so far."""
        return self._buffer.end_ms

    @property
    def is_in_turn(self) -> bool:
        """Return whether a turn is open."""
        return self._state.start_ms is not None

    def configure(self, wire: WireFormat, rules: TurnRules | None) -> None:
        """Set the audio format and the rules of turn detection (None: no detection)."""
        if wire != self._decoder.wire:
            self._flush_decoder()
            self._decoder = InputDecoder(wire)
        if rules is None or self._rules is None:
            self._state = reset_turn(self._state)
        self._rules = rules

    async def append(self, data: bytes) -> AsyncGenerator[TurnEvent, None]:
        """Append audio in the session's format, and yield each turn event when it is detected.

        Raises:
            InvalidRequest: The audio ends in the middle of a sample.
            BufferFull: There is no turn detection, and the buffer holds a turn of maximum length.
        """
        wire = self._decoder.wire
        chunk_bytes = wire.sample_rate * wire.bytes_per_sample * CHUNK_MS // 1000
        for start in range(0, len(data), chunk_bytes):
            chunk = data[start : start + chunk_bytes]
            if self._rules is None and self._buffered_ms() >= self._max_turn_ms:
                raise BufferFull(
                    f"audio: the buffer holds the maximum of {self._max_turn_ms / 1000:g} s; "
                    "commit or clear it",
                    param="audio",
                )
            samples, probabilities = await asyncio.to_thread(self._decode_and_detect, chunk)
            self._buffer.append(samples)
            for probability in probabilities:
                if (event := self._process_frame(probability)) is not None:
                    yield event

    def commit(self) -> np.ndarray:
        """Return all audio in the buffer, int16 at 16 kHz, and empty the buffer.

        Raises:
            BufferEmpty: The buffer holds less than 0.1 s.
        """
        # The filter still holds the last 9 ms that the client sent; they count as well.
        self._flush_decoder()
        buffered_ms = self._buffered_ms()
        if buffered_ms < MIN_COMMIT_MS:
            raise BufferEmpty(
                f"the buffer holds {buffered_ms} ms of audio, a turn needs {MIN_COMMIT_MS} ms"
            )
        return self.take(self._buffer.start_ms, self._buffer.end_ms + 1)

    def take(self, start_ms: int, end_ms: int) -> np.ndarray:
        """Return the audio of a turn, int16 at 16 kHz, and discard it and all audio before it."""
        samples = self._buffer.read(start_ms, end_ms)
        self._buffer.discard(end_ms)
        self._state = reset_turn(self._state)
        return samples

    def clear(self) -> None:
        """Discard all audio that is not committed."""
        self._flush_decoder()
        self._buffer.discard(self._buffer.end_ms + 1)
        self._state = reset_turn(self._state)

    def _decode_and_detect(self, chunk: bytes) -> tuple[np.ndarray, list[float]]:
        """Decode a chunk and estimate the probability of speech. Runs on a thread: it is slow."""
        samples = self._decoder.decode(chunk)
        return samples, self._detector.push(samples)

    def _flush_decoder(self) -> None:
        """Append the samples that the decoder's filter holds; they are too few for a turn."""
        samples = self._decoder.flush()
        self._buffer.append(samples)
        self._skip_frames(len(self._detector.push(samples)))

    def _skip_frames(self, num_frames: int) -> None:
        """Advance the time without detection, so that later turns have the right times."""
        state = self._state
        self._state = replace(state, now_ms=state.now_ms + num_frames * FRAME_MS)

    def _process_frame(self, probability: float) -> TurnEvent | None:
        if self._rules is None:
            self._skip_frames(1)
            return None
        self._state, event = step(self._rules, self._state, probability)
        if self._state.start_ms is None and event is None:
            self._buffer.discard(self._state.now_ms - FRAME_MS - self._rules.prefix_ms)
        return event

    def _buffered_ms(self) -> int:
        return self._buffer.end_ms - self._buffer.start_ms
