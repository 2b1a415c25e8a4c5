"""What the user says: the input buffer, and the turns that are found in it."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import replace

import numpy as np

from sglang_omni.entrypoints.realtime.audio_codec import SAMPLES_PER_MS, InputDecoder, WireFormat
from sglang_omni.entrypoints.realtime.turn_detection import (
    Turn,
    TurnRules,
    TurnState,
    abandon,
    step,
)
from sglang_omni.media.vad import FRAME_MS, Detector
from sglang_omni.protocol.errors import InvalidRequest

# Audio decoded and searched between two looks at the event loop.
PIECE_MS = 1000
# OpenAI's least length of a turn.
LEAST_COMMITTED_MS = 100
_NOTHING = np.zeros(0, np.int16)


class BufferEmpty(InvalidRequest):
    """There is too little in the buffer to be a turn."""

    code = "input_audio_buffer_commit_empty"


class BufferFull(InvalidRequest):
    """The buffer holds the longest turn that is taken."""

    code = "input_audio_buffer_full"


class AudioBuffer:
    """int16 samples at 16 kHz, addressed by their time since the session's audio began.

    Kept in the pieces they came in: a long turn is not copied again with each of them.
    """

    def __init__(self) -> None:
        self._pieces: deque[np.ndarray] = deque()
        self._start = 0
        self._end = 0

    @property
    def start_ms(self) -> int:
        """When the oldest sample that is held was heard."""
        return self._start // SAMPLES_PER_MS

    @property
    def end_ms(self) -> int:
        """When the newest sample was heard."""
        return self._end // SAMPLES_PER_MS

    def append(self, samples: np.ndarray) -> None:
        """Add to the end."""
        self._pieces.append(samples)
        self._end += len(samples)

    def read(self, start_ms: int, end_ms: int) -> np.ndarray:
        """A copy of the samples between two times, as far as they are held."""
        first, last = (max(ms * SAMPLES_PER_MS - self._start, 0) for ms in (start_ms, end_ms))
        return np.concatenate((_NOTHING, *self._pieces))[first:last].copy()

    def forget(self, before_ms: int) -> None:
        """Let go of what is older."""
        count = min(max(before_ms * SAMPLES_PER_MS - self._start, 0), self._end - self._start)
        self._start += count
        while count:
            piece = self._pieces.popleft()
            if len(piece) > count:
                self._pieces.appendleft(piece[count:].copy())
            count -= min(len(piece), count)


class InputAudioBuffer:
    """Owns what was heard and not yet committed. One task calls `hear` at a time."""

    def __init__(self, wire: WireFormat, detector: Detector, most_ms: int) -> None:
        """`most_ms`: the longest turn, and the most audio that is held."""
        self._ear, self._detector, self._most_ms = InputDecoder(wire), detector, most_ms
        self._buffer = AudioBuffer()
        self._state = TurnState()
        self._rules: TurnRules | None = None

    @property
    def now_ms(self) -> int:
        """How much was heard in this session."""
        return self._buffer.end_ms

    @property
    def in_turn(self) -> bool:
        """Whether the user is speaking."""
        return self._state.start_ms is not None

    def configure(self, wire: WireFormat, rules: TurnRules | None) -> None:
        """Take another format, or look for turns in another way (None: not at all)."""
        if wire != self._ear.wire:
            self._finish_stream()
            self._ear = InputDecoder(wire)
        if rules is None or self._rules is None:
            self._state = abandon(self._state)
        self._rules = rules

    async def hear(self, data: bytes) -> AsyncGenerator[Turn, None]:
        """Take audio in the session's format; gives the turns that begin and end in it, each
        as soon as it is found. Raises `InvalidRequest` for half a sample, `BufferFull`."""
        wire = self._ear.wire
        size = wire.rate * wire.bytes_per_sample * PIECE_MS // 1000
        for begin in range(0, len(data), size):
            piece = data[begin : begin + size]
            if self._rules is None and self._held_ms() >= self._most_ms:
                raise BufferFull(
                    f"audio: a turn may have {self._most_ms / 1000:g} s", param="audio"
                )
            samples, speech = await asyncio.to_thread(self._sense, piece)
            self._buffer.append(samples)
            for probability in speech:
                if (turn := self._advance(probability)) is not None:
                    yield turn

    def commit(self) -> np.ndarray:
        """Everything in the buffer, int16 at 16 kHz. Raises `BufferEmpty` below 0.1 s."""
        # First, for what was sent counts, and the filter holds the last 9 ms of it.
        self._finish_stream()
        held_ms = self._held_ms()
        if held_ms < LEAST_COMMITTED_MS:
            raise BufferEmpty(
                f"the buffer holds {held_ms} ms of audio, a turn has at least {LEAST_COMMITTED_MS}"
            )
        return self.take(self._buffer.start_ms, self._buffer.end_ms + 1)

    def take(self, start_ms: int, end_ms: int) -> np.ndarray:
        """The audio of a turn, int16 at 16 kHz; the buffer forgets it and what was before."""
        samples = self._buffer.read(start_ms, end_ms)
        self._buffer.forget(end_ms)
        self._state = abandon(self._state)
        return samples

    def clear(self) -> None:
        """Forget everything that was not committed."""
        self._finish_stream()
        self._buffer.forget(self._buffer.end_ms + 1)
        self._state = abandon(self._state)

    def _sense(self, piece: bytes) -> tuple[np.ndarray, list[float]]:
        """The heavy part, on a thread."""
        samples = self._ear.hear(piece)
        return samples, self._detector.push(samples)

    def _finish_stream(self) -> None:
        """Take in what the decoder's filter holds; it is too little to be a turn."""
        samples = self._ear.rest()
        self._buffer.append(samples)
        self._skip(len(self._detector.push(samples)))

    def _skip(self, frames: int) -> None:
        """Let frames go by: the clock goes on, so that turns found later are where they were."""
        state = self._state
        self._state = replace(state, now_ms=state.now_ms + frames * FRAME_MS)

    def _advance(self, probability: float) -> Turn | None:
        if self._rules is None:
            self._skip(1)
            return None
        self._state, turn = step(self._rules, self._state, probability)
        if self._state.start_ms is None and turn is None:
            self._buffer.forget(self._state.now_ms - FRAME_MS - self._rules.prefix_ms)
        return turn

    def _held_ms(self) -> int:
        return self._buffer.end_ms - self._buffer.start_ms
