"""Find where somebody speaks in a recording, from the speech probability of each frame."""

from dataclasses import dataclass

from sglang_omni.media.vad import FRAME, SAMPLE_RATE

FRAME_S = FRAME / SAMPLE_RATE
# Speech that has begun ends at a lower probability than it begins at.
HYSTERESIS = 0.15


@dataclass(frozen=True)
class CutRules:
    """How a recording is cut into spans of speech.

    Attributes:
        threshold: The speech probability of a frame at which speech begins, 0 to 1.
        min_silence_s: A pause of this length ends a span.
        padding_s: Sound around each span that is transcribed with it, where it is silent.
        min_speech_s: Shorter spans are left out.
        max_speech_s: A longer span is cut where its speech is weakest.
        whole_s: A recording of at most this length is not cut; 0 to cut every recording.
    """

    threshold: float = 0.4
    min_silence_s: float = 0.5
    padding_s: float = 0.2
    min_speech_s: float = 0.1
    max_speech_s: float = 28.0
    whole_s: float = 30.0


@dataclass(frozen=True)
class SpeechSpan:
    """A part of a recording in which somebody speaks. Times are in seconds from its start.

    Attributes:
        start: When the speech begins.
        end: When it ends.
        padded_start: Where the sound to transcribe begins.
        padded_end: Where it ends.
        probability: Mean speech probability of the frames between `start` and `end`.
    """

    start: float
    end: float
    padded_start: float
    padded_end: float
    probability: float


@dataclass(frozen=True)
class RecordingProgress:
    """What one step of reading a recording found.

    Attributes:
        seconds: Length of the recording as far as it is read.
        spans: Speech that has ended, in order. Its samples are stored.
        is_whole: The recording is short and was not cut: its one span, if any, is all of it.
        last: Whether the recording has ended.
    """

    seconds: float
    spans: tuple[SpeechSpan, ...]
    is_whole: bool = False
    last: bool = False


class SpanFinder:
    """Finds the spans of one recording, frame by frame."""

    def __init__(self, rules: CutRules) -> None:
        self._rules = rules
        self._min_silence = max(1, round(rules.min_silence_s / FRAME_S))
        self._max_speech = max(2, round(rules.max_speech_s / FRAME_S))
        self._num_frames = 0
        # The frame after the previous span, and whether the next one continues it.
        self._previous_end, self._continues = 0, False
        self._start = 0
        # The probabilities since `_start`; empty between spans.
        self._frames: list[float] = []
        self._num_silent = 0

    def push(self, probabilities: list[float]) -> list[SpeechSpan]:
        """Take the probabilities of the next frames and return the spans that they end."""
        spans: list[SpeechSpan | None] = []
        for probability in probabilities:
            spans.append(self._push_frame(probability))
        return [span for span in spans if span is not None]

    def finish(self) -> list[SpeechSpan]:
        """Return the span that the end of the recording ends, if any."""
        span = self._close(len(self._frames) - self._num_silent) if self._frames else None
        return [] if span is None else [span]

    def _push_frame(self, probability: float) -> SpeechSpan | None:
        self._num_frames += 1
        if not self._frames:
            if probability < self._rules.threshold:
                return None
            self._start = self._num_frames - 1
        self._frames.append(probability)
        is_silent = probability < max(self._rules.threshold - HYSTERESIS, 0.0)
        self._num_silent = self._num_silent + 1 if is_silent else 0
        if self._num_silent >= self._min_silence:
            return self._close(len(self._frames) - self._num_silent)
        return self._split() if len(self._frames) >= self._max_speech else None

    def _close(self, length: int) -> SpeechSpan | None:
        """End the span after `length` frames, where silence begins."""
        # A pause belongs half to the span before it, and half to the one after it.
        padding_s = min(self._rules.padding_s, self._num_silent * FRAME_S / 2)
        span = self._build(length, padding_s)
        self._previous_end, self._continues = self._start + length, False
        self._frames, self._num_silent = [], 0
        return span

    def _split(self) -> SpeechSpan | None:
        """End the span where its second half is most silent; the rest begins the next one."""
        half = len(self._frames) // 2
        length = min(range(half, len(self._frames)), key=self._frames.__getitem__)
        span = self._build(length, 0.0)
        self._start = self._previous_end = self._start + length
        self._continues = True
        self._frames = self._frames[length:]
        self._num_silent = min(self._num_silent, len(self._frames))
        return span

    def _build(self, length: int, padding_s: float) -> SpeechSpan | None:
        start, end = self._start * FRAME_S, (self._start + length) * FRAME_S
        if end - start < self._rules.min_speech_s:
            return None
        gap_s = 0.0 if self._continues else (self._start - self._previous_end) * FRAME_S
        return SpeechSpan(
            start,
            end,
            start - min(self._rules.padding_s, gap_s if not self._previous_end else gap_s / 2),
            end + padding_s,
            sum(self._frames[:length]) / length,
        )
