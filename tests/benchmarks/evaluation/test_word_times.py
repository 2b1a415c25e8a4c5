"""The times of words are compared with those that were heard, and the recogniser's lag is told."""

import json
from pathlib import Path

import httpx
import pytest

from benchmarks.evaluation import word_times
from benchmarks.evaluation.metrics.recognisers import Clip
from benchmarks.evaluation.metrics.whisper_tiny import HeardWord
from benchmarks.evaluation.word_times import SpokenSet, WordError, build_texts, compare, find_lag
from tests.entrypoints.http.speaking import serving_speech

LAG_S = 0.1


def test_words_that_both_have_are_compared_but_for_the_first() -> None:
    words = [
        {"word": "It", "start": 0.1, "end": 0.2},
        {"word": "$5", "start": 0.2, "end": 0.5},
        {"word": "cost,", "start": 0.8, "end": 1.0},
    ]
    heard = [HeardWord("It", 0, 0.2), HeardWord("five", 0.3, 0.4), HeardWord("Cost", 0.9, 1.0)]
    (error,) = compare(words, heard)
    assert (error.word, error.after_pause) == ("cost,", True)
    assert [error.start_s, error.end_s] == pytest.approx([-0.1, 0.0])


def test_the_lag_is_that_of_words_after_a_pause() -> None:
    errors = [WordError("a", -LAG_S, -LAG_S, True), WordError("b", 0.1 - LAG_S, 0.0, False)]
    lag_s, num_pauses = find_lag(errors)
    assert (lag_s, num_pauses) == (LAG_S, 1)
    figures = SpokenSet(1, 2.0, 4, errors).summarise(lag_s)
    assert (figures["words"], figures["compared"]) == (4, 2)
    assert figures["start"]["median_s"] == pytest.approx(0.05)
    assert figures["corrected"]["start"]["median_s"] == pytest.approx(0.05)
    assert figures["corrected"]["start"]["bias_s"] == pytest.approx(0.05)


def test_there_are_more_than_a_hundred_texts_of_each_kind() -> None:
    assert [len(texts) for texts in build_texts().values()] == [100, 100]


class HearsOneWord:
    """A recogniser that hears the second word late."""

    def locate_words(self, clip: Clip) -> list[HeardWord]:
        samples, rate = clip
        assert samples.ndim == 1
        assert rate > 0
        return [HeardWord("One", 0.0, 0.1), HeardWord("two", 0.5, 0.6)]


def test_the_command_asks_a_server_and_writes_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_times, "WhisperTiny", HearsOneWord)
    monkeypatch.setattr(word_times, "build_texts", lambda: {"few": ["One two.", "One two three."]})
    out = tmp_path / "times.json"
    with serving_speech() as served:
        # The scripted talker says everything at once, so the words are half a second early.
        assert word_times.main(["--url", served.url, "--out", str(out)]) == 1
    few = json.loads(out.read_text(encoding="utf-8"))["sets"]["few"]
    assert (few["texts"], few["words"], few["compared"]) == (2, 5, 2)
    assert few["start"]["median_s"] == pytest.approx(0.5, abs=0.01)


def test_a_server_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(word_times, "served_model", lambda url: "m")
    monkeypatch.setattr(word_times, "WhisperTiny", HearsOneWord)

    def fail(*_: object) -> None:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(word_times, "speak", fail)
    assert word_times.main(["--url", "http://127.0.0.1:9"]) == 2
    assert "word_times: refused" in capsys.readouterr().err
