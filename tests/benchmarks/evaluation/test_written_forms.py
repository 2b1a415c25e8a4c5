"""The sentences with written forms are complete, and their words need no front end."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.evaluation.datasets.written_forms import read_written_forms
from benchmarks.evaluation.readings.comparison import compare_words

FORMS = read_written_forms()


def test_there_are_a_hundred_sentences_four_of_each_class() -> None:
    assert len({form.written for form in FORMS}) == 100
    assert set(Counter(form.kind for form in FORMS).values()) == {4}


def test_sentences_are_of_everyday_length() -> None:
    assert all(6 <= len(form.written.split()) <= 14 for form in FORMS)


def test_intended_words_have_no_digit_and_no_sign() -> None:
    wrong = [form for form in FORMS if not re.fullmatch(r"[A-Za-z ,]+\.", form.intended)]
    assert not wrong


def test_written_sentences_have_a_form_to_read() -> None:
    assert all(form.written != form.intended for form in FORMS)


def test_intended_words_are_without_error_against_themselves() -> None:
    compared = [compare_words(form.written, form.intended, form.intended) for form in FORMS]
    assert not any(comparison.wrong or comparison.missed_key_words for comparison in compared)


def test_a_line_with_another_number_of_columns_is_named(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text("year\tIn 1984.\tIn nineteen eighty four.\nyear\tIn 1985.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"table\.tsv, line 2: 2 columns"):
        read_written_forms(path)
