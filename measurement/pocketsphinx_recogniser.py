"""A speech recogniser that needs no download: pocketsphinx with its packaged English model.

Install it with `pip install pocketsphinx`.
"""

import re

import numpy as np
import soxr

RECOGNISER_RATE = 16_000
PADDING_S = 0.25
# The sample rate in Hz of the source synthesizer and the released model.
MODEL_RATE = 44_100


class Recogniser:
    """Recognise English speech, or only the sentences of a JSGF grammar."""

    def __init__(self, grammar: str | None = None) -> None:
        # Imported here: `spoken_words` does not need it.
        from pocketsphinx import Decoder

        # Normalise each utterance by itself, so that results do not depend on earlier ones.
        self._decoder = Decoder(samprate=RECOGNISER_RATE, loglevel="FATAL", cmn="batch")
        if grammar is not None:
            self._decoder.add_jsgf_string("commands", grammar)
            self._decoder.activate_search("commands")

    def knows(self, word: str) -> bool:
        """Return whether the dictionary has the word."""
        return self._decoder.lookup_word(word) is not None

    def words(self, samples: np.ndarray, rate: int = MODEL_RATE) -> list[str]:
        """Return the words of float samples [n] at `rate` Hz, in lower case."""
        pcm = soxr.resample(samples.astype(np.float32), rate, RECOGNISER_RATE)
        pcm = np.pad(pcm, int(PADDING_S * RECOGNISER_RATE))
        self._decoder.start_utt()
        raw = (np.clip(pcm, -1, 1) * 32767).astype(np.int16).tobytes()
        self._decoder.process_raw(raw, full_utt=True)
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return spoken_words(hypothesis.hypstr) if hypothesis else []


def spoken_words(text: str) -> list[str]:
    """Return the words of a text in lower case.

    Hyphens separate words; pronunciation marks are removed.
    """
    return re.findall(r"[a-z']+", re.sub(r"\(\d+\)", "", text.lower()).replace("-", " "))
