"""What users are shown is no training item, though its like is."""

from itertools import islice
from random import Random

import pytest

from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini_2.thinker.dialog import DialogItem, text_message
from cookbook.ming_mini_2.thinker.excluded import (
    ROOT,
    Excluded,
    build_excluded,
    first_prompts,
    quoted_texts,
)
from cookbook.ming_mini_2.thinker.persona import persona
from cookbook.ming_mini_2.thinker.spoken_texts import spoken_texts
from cookbook.ming_mini_2.thinker.sums import sum_in_figures, sum_in_words
from cookbook.ming_mini_2.thinker.tasks import groups
from tests.cookbook.thinker.conftest import LEXICON

README_EXAMPLES = (
    "What is 17 + 25?",
    "What colour is the circle?",
    "The train leaves at seven.",
)


@pytest.mark.parametrize("text", README_EXAMPLES)
def test_the_readmes_examples_are_read_and_excluded(text: str, excluded: Excluded) -> None:
    documents = (ROOT / "README.md", ROOT / "docs" / "guide.md")
    assert any(text in path.read_text("utf-8") for path in documents)
    assert text in excluded.texts
    assert Item("x", text, "") in excluded
    assert Item("x", "", "", speech=text) in excluded
    assert DialogItem("x", "Hi", "", before=(text_message("user", text),)) in excluded


def test_first_prompts_and_starter_prompts_are_excluded(excluded: Excluded) -> None:
    for text in (*first_prompts(), "What can you do?", "How do you spell river?"):
        assert len(text) < 6 or Item("x", text, "") in excluded


@pytest.mark.parametrize("text", ["17 + 25", "What's 17 plus 25?"])
def test_a_sum_of_the_documents_is_excluded_in_any_wording(text: str, excluded: Excluded) -> None:
    assert Item("sum", text, "", about="17 + 25") in excluded
    assert Item("sum", text, "", about="17 + 26") not in excluded


def test_no_training_item_is_excluded(excluded: Excluded) -> None:
    for items in islice(groups("text", 7, LEXICON, "train", excluded), 1500):
        for item in items:
            assert item.question not in excluded.texts
            assert item.about not in excluded.sums
    for one in islice(spoken_texts(7, LEXICON, excluded), 800):
        assert one.text not in excluded.texts
        assert one.about not in excluded.sums


def test_the_filter_has_something_to_remove() -> None:
    """Without it, the tasks do draw texts like those of the documents."""
    rng = Random(1)
    shown = build_excluded(["What can you do?", "What is 3 + 4?"])
    drawn = [persona(rng, LEXICON) for _ in range(8000)]
    drawn += [sum_in_figures(rng, LEXICON) for _ in range(5000)]
    drawn += [sum_in_words(rng, LEXICON) for _ in range(5000)]
    found = [item for item in drawn if item in shown]
    assert {item.task for item in found} == {"persona", "arithmetic", "sum_in_words"}
    assert len(found) < 0.1 * len(drawn)


def test_like_questions_are_trained(excluded: Excluded) -> None:
    rng = Random(2)
    drawn = [maker(rng, LEXICON) for maker in (persona, sum_in_figures) for _ in range(3000)]
    asked = {item.question.lower().strip("?!. ") for item in drawn if item not in excluded}
    assert "what can you do" in asked
    assert any(text.startswith("what is") and "+" in text for text in asked)


def test_quotes_of_either_kind_are_read() -> None:
    text = """say("one two three") and {'four five six'}"""
    assert list(quoted_texts(text)) == ["one two three", "four five six"]
