"""What the talker is asked to say is the same over every route that speaks."""

from collections.abc import Iterator

import pytest

from tests.entrypoints.http.fake import Served
from tests.entrypoints.http.speaking import ROUTES, serving_speech, speak_over
from tests.testing.family import split_fragments

SENTENCES = (
    "Hello there, my friend, and welcome to the old stone mill by the river. ",
    "It was built in 1867 and has ground corn for 3.5 generations since. ",
    "Its wheel turns slowly, and turns again, from the morning to the evening!",
)


@pytest.fixture(scope="module")
def speaking() -> Iterator[Served]:
    with serving_speech() as served:
        yield served


@pytest.mark.parametrize("route", ROUTES)
def test_the_talker_is_asked_for_the_fragments_of_the_front_end(
    speaking: Served, route: str
) -> None:
    text = "".join(SENTENCES)
    asked = speak_over(route, speaking, text)
    assert len(asked) > 1, "in one piece it proves nothing"
    # A chat is cut into segments first, which may end elsewhere.
    assert " ".join(asked) == " ".join(split_fragments(text))


@pytest.mark.parametrize("route", ROUTES)
def test_a_single_word_is_spoken(speaking: Served, route: str) -> None:
    assert speak_over(route, speaking, "hi") == split_fragments("hi")
