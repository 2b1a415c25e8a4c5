"""Word errors of speech, with the normalisation of seed-tts-eval.

Its `run_wer.py` removes punctuation but the apostrophe, puts English in lower case, and takes
Chinese by the character. Words that punctuation joined become one word ("well-known").
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from measurement.edit_distance import distance

# zhon's `hanzi.punctuation`, which the reference script removes besides ASCII's.
_CHINESE = (
    "＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､\u3000、〃〈〉《》「」『』【】"
    "〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏﹑﹔·！？｡。"
)
_REMOVED = str.maketrans("", "", (string.punctuation + _CHINESE).replace("'", ""))
# An item with more than half of its words wrong is one that failed, not one that was misheard.
BAD = 0.5


@dataclass(frozen=True)
class WordErrors:
    """Wrong words (substituted, left out or added) of so many that should be said."""

    wrong: int
    words: int

    @property
    def rate(self) -> float:
        """The word error rate of the item; 1 for words where none should be."""
        return self.wrong / self.words if self.words else float(self.wrong > 0)


def normalise(text: str, language: str) -> list[str]:
    """The words of a text in "en", its characters in "zh"."""
    text = text.translate(_REMOVED)
    return list("".join(text.split())) if language == "zh" else text.lower().split()


def errors(said: str, heard: str, language: str) -> WordErrors:
    """The word errors of what was heard, where `said` should be."""
    words = normalise(said, language)
    return WordErrors(distance(words, normalise(heard, language)), len(words))


def summarise(items: Sequence[WordErrors]) -> dict[str, float | int | None]:
    """The rates that are in use, by name: they are not comparable with each other.

    `wer_corpus`: all wrong words by all words (sglang-omni). `wer_mean`: the mean of the items'
    rates (seed-tts-eval, vllm-omni). `bad`: items with more than half of their words wrong.
    """
    words = sum(one.words for one in items)
    return {
        "items": len(items),
        "wer_corpus": sum(one.wrong for one in items) / words if words else None,
        "wer_mean": fmean(one.rate for one in items) if items else None,
        "bad": sum(one.rate > BAD for one in items),
    }
