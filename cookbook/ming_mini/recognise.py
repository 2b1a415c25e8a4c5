"""An independent recogniser: pocketsphinx with the English model that its package carries."""

import re

import numpy as np
import soxr

from cookbook.ming_mini.synthesize import RATE

RECOGNISER_RATE = 16_000
EDGE_SECONDS = 0.25


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

    def words(self, samples: np.ndarray) -> list[str]:
        """The words of float samples [n] at 44.1 kHz, lower case."""
        pcm = soxr.resample(samples.astype(np.float32), RATE, RECOGNISER_RATE)
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
