"""Word errors of speech, with the normalisation of seed-tts-eval.

Its `run_wer.py` removes punctuation except the apostrophe, converts English to lower case, and
splits Chinese into characters. Words that punctuation joins become one word ("well-known").
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from measurement.edit_distance import edit_distance

# zhon's `hanzi.punctuation`, which the reference script removes besides ASCII's.
_CHINESE = (
    "＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､\u3000、〃〈〉《》「」『』【】"
    "〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏﹑﹔·！？｡。"
)
_REMOVED = str.maketrans("", "", (string.punctuation + _CHINESE).replace("'", ""))
# With more than half of its words wrong an item has failed, rather than been misheard.
FAILED_RATE = 0.5


@dataclass(frozen=True)
class WordErrors:
    """The wrong words of a transcript, and the reference's length.

    Wrong are words that are substituted, deleted or inserted.
    """

    wrong: int
    words: int

    @property
    def rate(self) -> float:
        """Return the word error rate; 1 if there are words where the reference has none."""
        return self.wrong / self.words if self.words else float(self.wrong > 0)


def normalise_words(text: str, language: str) -> list[str]:
    """Return the words of a text in "en", its characters in "zh"."""
    text = text.translate(_REMOVED)
    return list("".join(text.split())) if language == "zh" else text.lower().split()


def count_word_errors(reference: str, transcript: str, language: str) -> WordErrors:
    """Count the word errors of the transcript `transcript` against the reference `reference`."""
    words = normalise_words(reference, language)
    return WordErrors(edit_distance(words, normalise_words(transcript, language)), len(words))


def summarise_word_errors(items: Sequence[WordErrors]) -> dict[str, float | int | None]:
    """Return the common word error rates by name; they are not comparable with each other.

    `wer_corpus`: all wrong words over all words (sglang-omni). `wer_mean`: the mean of the items'
    rates (seed-tts-eval, vllm-omni). `bad`: the number of items with more than half of their words
    wrong.
    """
    words = sum(item.words for item in items)
    return {
        "items": len(items),
        "wer_corpus": sum(item.wrong for item in items) / words if words else None,
        "wer_mean": fmean(item.rate for item in items) if items else None,
        "bad": sum(item.rate > FAILED_RATE for item in items),
    }
