"""Markup, line breaks and emoji."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"emoji", "entity", "line", "markup", "table"}

READ = [
    ("## Goals\n\nWe win", "Goals. We win"),
    ("* one\n* two", "one. two"),
    ("1. Stir\n2. Bake", "one. Stir. two. Bake"),
    ("A **very** good *day*", "A very good day"),
    ("Use `ls` now", "Use ls now"),
    ("See [docs](https://a.io/b) here", "See docs here"),
    ("![cat](c.png) A cat", " A cat"),
    ("| City | Area |\n|---|---|\n| Rome | big |", "City, Area. Rome, big"),
    ("Above\n\n---\n\nBelow", "Above. Below"),
    ("First\nSecond", "First, Second"),
    ("Tom &amp; Ann", "Tom and Ann"),
    ("A<br>B", "A, B"),
    ("Nice 😀 work", "Nice  work"),
    ("```js\nlet a\n```\nEnd", "let a. End"),
    ("> Be brave", "Be brave"),
    ("~~old~~ new", "old new"),
]

NOT_READ = [
    "a_b",
    "5 > 3",
    "snake_case here",
    "-5 degrees",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_markup_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_markup(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
