"""Signs that no other rule reads in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"about", "number", "number sign", "repeat", "symbol"}

READ = [
    ("salt & pepper", "salt and pepper"),
    ("#3", "number three"),
    ("100 %", "one hundred percent"),
    ("a @ b", "a at b"),
    ("x < y", "x less than y"),
    ("A → B", "A to B"),
    ("§ 7", "section seven"),
    ("w/o milk", "without milk"),
    ("~30 people", "about thirty people"),
    ("foo_bar", "foo underscore bar"),
    ("© Acme", "copyright Acme"),
    ("a\\b", "a backslash b"),
    ("C#", "C sharp"),
    ("\u201chi\u201d", '"hi"'),
    ("[ok]", "ok"),
    ("Go \u2014 now", "Go, now"),
    ("haaaaaaaaaaaaaaaaaaaaaah", "haaaaaaaaaaaaaaaah"),
    ("③", "three"),
]

NOT_READ = [
    "plain words",
    "It's fine, really!",
    "café naïve",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_symbols_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_symbols(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
