"""The figures of all heard sentences, and of each class of written forms."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.evaluation.datasets.written_forms import WrittenForm
from benchmarks.evaluation.readings.comparison import Comparison, compare_words
from measurement.intervals import bootstrap_interval, wilson_interval


@dataclass(frozen=True)
class HeardSentence:
    """A sentence, the transcript of its speech, and their differences."""

    form: WrittenForm
    transcript: str
    comparison: Comparison

    @classmethod
    def compare(cls, form: WrittenForm, transcript: str) -> "HeardSentence":
        """Compare a transcript with the intended words of a sentence."""
        return cls(form, transcript, compare_words(form.written, form.intended, transcript))

    def form_as_json(self) -> dict[str, str]:
        """Return the sentence for a result file."""
        return {
            "class": self.form.kind,
            "written": self.form.written,
            "intended": self.form.intended,
            "key_words": " ".join(self.comparison.key_words),
        }

    def as_json(self) -> dict[str, Any]:
        """Return the transcript and its errors for a result file."""
        return {
            "heard": self.transcript,
            "wrong": self.comparison.wrong,
            "missed_key_words": " ".join(self.comparison.missed_key_words),
        }


def summarise(sentences: Sequence[HeardSentence]) -> dict[str, Any]:
    """Return the figures of all sentences with their 95 % intervals, and those of each class."""
    figures = _count(sentences)
    keyed, understood = figures["sentences_with_key_words"], figures["key_words_all_heard"]
    pairs = [(float(item.comparison.wrong), float(item.comparison.words)) for item in sentences]
    kinds = list(dict.fromkeys(sentence.form.kind for sentence in sentences))
    return {
        **figures,
        "word_error_rate": figures["wrong"] / figures["words"],
        "word_error_rate_interval": bootstrap_interval(pairs),
        "share_with_all_key_words": understood / keyed if keyed else None,
        "share_with_all_key_words_interval": wilson_interval(understood, keyed),
        "classes": {
            kind: _count([item for item in sentences if item.form.kind == kind]) for kind in kinds
        },
    }


def _count(sentences: Sequence[HeardSentence]) -> dict[str, int]:
    keyed = [item.comparison for item in sentences if item.comparison.key_words]
    return {
        "sentences": len(sentences),
        "words": sum(item.comparison.words for item in sentences),
        "wrong": sum(item.comparison.wrong for item in sentences),
        "sentences_with_key_words": len(keyed),
        "key_words_all_heard": sum(not comparison.missed_key_words for comparison in keyed),
    }
