"""Frequent words and short forms in the texts that the talker learns to say."""

from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini_2.voices.contractions import shorten
from cookbook.ming_mini_2.voices.jobs import draw_jobs
from cookbook.ming_mini_2.voices.speakers import training_speakers
from cookbook.ming_mini_2.voices.texts import draw_texts
from cookbook.ming_mini_2.voices.vocabulary import CARRIERS, draw_vocabulary, read_vocabulary
from measurement.pocketsphinx_recogniser import spoken_words

WORDS = ("awesome", "bragging", "lisbon")


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("I am tired.", {"I'm tired."}),
        ("What is your name?", {"What's your name?"}),
        ("Do not wait.", {"Don't wait."}),
        ("We cannot go.", {"We can't go."}),
        ("They will not.", {"They won't.", "They'll not."}),
        ("It is not late.", {"It isn't late.", "It's not late."}),
        ("The mill is old.", {"The mill is old.", "The mill's old."}),
        # Nobody says "what it's", and a bus has no second s.
        ("I know what it is.", {"I know what it is."}),
        ("The bus is late.", {"The bus is late."}),
    ],
)  # fmt: skip
def test_long_forms_are_shortened_as_people_speak(text: str, short: set[str]) -> None:
    assert {shorten(text, Random(seed)) for seed in range(40)} == short


def test_rows_and_carriers_have_only_words_of_the_list() -> None:
    rng = Random(1)
    drawn = [draw_vocabulary(rng, WORDS) for _ in range(400)]
    own = {*WORDS, *(word for one in CARRIERS for word in spoken_words(one))}
    assert {word for text in drawn for word in spoken_words(text)} <= own
    assert any("Lisbon" in text for text in drawn)
    assert any("lisbon" in text for text in drawn)
    assert not any("{" in text for text in drawn)


def test_frequent_words_come_more_often_than_rare_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cookbook.ming_mini_2.voices.vocabulary.FREQUENT", 2)
    rng, pool = Random(1), ("early", "soon", *(f"rare{chr(97 + one)}" for one in range(18)))
    found = Counter(word for _ in range(500) for word in spoken_words(draw_vocabulary(rng, pool)))
    assert found["early"] > 4 * found["rarea"] > 0


def test_texts_have_them_only_where_they_are_given(lexicon: Lexicon) -> None:
    with_words = list(islice(draw_texts(3, lexicon, frequent=WORDS), 1000))
    without = list(islice(draw_texts(3, lexicon), 1000))
    said, before = (
        Counter(word for text in texts for word in spoken_words(text))
        for texts in (with_words, without)
    )
    assert said["awesome"] > 100
    assert before["awesome"] == 0
    assert said["i'm"] > 3 * before["i'm"]
    assert with_words == list(islice(draw_texts(3, lexicon, frequent=WORDS), 1000))


def test_the_teachers_say_them(lexicon: Lexicon) -> None:
    jobs = islice(draw_jobs(1, lexicon, training_speakers(), frequent=WORDS), 200)
    assert 20 < sum("bragging" in job.text.lower() for job in jobs) < 120


def test_a_file_has_the_words_of_the_package(tmp_path: Path) -> None:
    pytest.importorskip("wordfreq")
    words = read_vocabulary()
    assert len(set(words)) == len(words) == 18_000
    assert {"the", "awesome", "don't", "barcelona"} <= set(words[:6000])
    assert not {"mr", "http", "2nd", "uk"} & set(words)
    (tmp_path / "words").write_text("\n".join(words), encoding="utf-8")
    assert read_vocabulary(tmp_path / "words") == words
