"""Ming's front end tells how it reads a text, so that every fragment is traced back to it."""

from pathlib import Path

import pytest

from benchmarks.evaluation.datasets.written_forms import WrittenForm, read_written_forms
from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.speech_text import DEFAULT_READING, ReadingOptions
from sglang_omni.models.written_words import WrittenText, get_letters

GUIDE = (Path(__file__).parents[4] / "docs" / "text.md").read_text(encoding="utf-8")
CHINESE = "今天是5月3日，我们有100元。他说：“好！”然后Bob走了。第3章共20页，重2.5 kg。"


def trace(text: str, reading: ReadingOptions = DEFAULT_READING) -> list[tuple[str, list[str]]]:
    """Return what is written for each fragment, and its words. Every fragment must be known."""
    written = WrittenText()
    front_end = MingSpeechText().open_front_end(reading, written)
    traced = []
    for fragment in front_end.split_fragments(text):
        taken = written.take(fragment)
        assert taken is not None, fragment
        num_letters = len(get_letters(fragment))
        assert taken.words, fragment
        ends = [word.end for word in taken.words]
        assert ends == sorted(ends)
        assert ends[-1] == num_letters
        traced.append((taken.text, [word.text for word in taken.words]))
    return traced


@pytest.mark.parametrize(
    "text",
    [GUIDE, CHINESE * 20, "\n".join(form.written for form in read_written_forms())],
    ids=["guide", "chinese", "forms"],
)
def test_every_fragment_of_a_long_text_is_known(text: str) -> None:
    traced = trace(text)
    assert len(traced) > 5
    told = "".join(word for _, words in traced for word in words)
    assert len(get_letters(told)) > 0.95 * len(get_letters(text))


@pytest.mark.parametrize("form", read_written_forms(), ids=lambda form: form.kind)
def test_the_words_of_a_sentence_are_its_own(form: WrittenForm) -> None:
    traced = trace(form.written)
    assert " ".join(told for told, _ in traced) == form.written
    joined = " ".join(word for _, words in traced for word in words)
    assert get_letters(joined) == get_letters(form.written)


def test_fragments_are_the_same_with_and_without_a_trace() -> None:
    traced = MingSpeechText().open_front_end(DEFAULT_READING, WrittenText())
    plain = MingSpeechText().open_front_end()
    assert [*traced.split_fragments(GUIDE)] == [*plain.split_fragments(GUIDE)]


def test_text_that_is_spoken_as_it_is_written_is_known() -> None:
    reading = ReadingOptions(normalization="none")
    assert trace("It cost 5 units.", reading) == [
        ("It cost 5 units.", ["It", "cost", "5", "units"])
    ]


def test_the_reference_does_not_tell_how_it_reads() -> None:
    written = WrittenText()
    front_end = MingSpeechText().open_front_end(ReadingOptions("reference"), written)
    (fragment,) = front_end.split_fragments("It cost 5 units.")
    assert written.take(fragment) is None
