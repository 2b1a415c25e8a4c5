"""Words in scripts that a checkpoint does not speak."""

import time

import pytest

from sglang_omni.models.scripts import find_unspoken_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Plain words, 42 and $5.", []),
        ("Café naïve Zürich Łódź smørrebrød", []),
        ("ＡＢＣ １２３ ℓ ª ²", []),
        ("2πr and 5 µm, 3 Ω", []),
        ("Привет, мир", ["Привет", "мир"]),
        ("Say 你好 now", ["你好"]),
        ("φιλία", ["φιλία"]),
        ("xПривет", ["Привет"]),
        ("かな カナ 한글", ["かな", "カナ", "한글"]),
        ("one שלום two مرحبا three नमस्ते four Привет", ["שלום", "مرحبا", "नमस"]),
        ("😀 🎉 — “quotes” …", []),
    ],
)
def test_english_is_written_in_latin_letters(text: str, words: list[str]) -> None:
    assert find_unspoken_words(text, ("en",)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("你好，world。〇三々", []),
        ("罕见字𠮷也读", []),
        ("Привет 你好", ["Привет"]),
        ("ひらがな", ["ひらがな"]),
    ],
)
def test_chinese_is_written_in_han_characters(text: str, words: list[str]) -> None:
    assert find_unspoken_words(text, ("zh", "en")) == words


def test_of_an_unknown_language_nothing_is_refused() -> None:
    assert find_unspoken_words("Привет", ("ru", "en")) == []


def test_a_book_is_searched_in_milliseconds() -> None:
    book = "The mill stands by the river; 磨坊立在河边。" * 100_000
    began = time.perf_counter()
    assert find_unspoken_words(book, ("zh", "en")) == []
    assert time.perf_counter() - began < 1
