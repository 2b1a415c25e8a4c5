"""An independent recogniser that needs no download: pocketsphinx with the English model that its
package carries (`pip install pocketsphinx`)."""

import re

import numpy as np
import soxr

RECOGNISER_RATE = 16_000
EDGE_SECONDS = 0.25
# What the source synthesizer and the released model speak at.
SPEECH_RATE = 44_100


class Recogniser:
    """Words of speech; any English, or only what a JSGF grammar allows."""

    def __init__(self, grammar: str | None = None) -> None:
        # Here, for `spoken_words` needs no recogniser.
        from pocketsphinx import Decoder

        # Normalised by each utterance alone, or an answer would depend on those before it.
        self._decoder = Decoder(samprate=RECOGNISER_RATE, loglevel="FATAL", cmn="batch")
        if grammar is not None:
            self._decoder.add_jsgf_string("commands", grammar)
            self._decoder.activate_search("commands")

    def knows(self, word: str) -> bool:
        """Whether its dictionary says how a word sounds."""
        return self._decoder.lookup_word(word) is not None

    def words(self, samples: np.ndarray, rate: int = SPEECH_RATE) -> list[str]:
        """The words of float samples [n] at `rate` Hz, lower case."""
        pcm = soxr.resample(samples.astype(np.float32), rate, RECOGNISER_RATE)
        pcm = np.pad(pcm, int(EDGE_SECONDS * RECOGNISER_RATE))
        self._decoder.start_utt()
        raw = (np.clip(pcm, -1, 1) * 32767).astype(np.int16).tobytes()
        self._decoder.process_raw(raw, full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        return spoken_words(found.hypstr) if found else []


def spoken_words(text: str) -> list[str]:
    """Words of a text, lower case; hyphens part words, and marks of pronunciations go."""
    return re.findall(r"[a-z']+", re.sub(r"\(\d+\)", "", text.lower()).replace("-", " "))
