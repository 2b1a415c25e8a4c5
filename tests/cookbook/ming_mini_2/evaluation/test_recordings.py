"""The recording with the fewest wrong words is chosen, by sentences that no evaluation has."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from cookbook.ming_mini.evaluation.served_speech import ServedSpeaker
from cookbook.ming_mini_2.evaluation.recordings import (
    Round,
    VoiceRecording,
    choose,
    count_wrong_words,
    draw_rounds,
    read_recordings,
    replace_recordings,
)
from measurement.everyday_sentences import available_sentences, sample_sentences
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.checksums import CHECKSUM_FILE, verify_checksums


def make_recording(text: str) -> VoiceRecording:
    return VoiceRecording(text, np.arange(len(text), dtype=np.int16))


def test_only_the_best_go_on_and_all_their_words_count() -> None:
    wrong = {
        ("present", "first"): 9,
        ("poor", "first"): 10,
        ("lucky", "first"): 2,
        ("good", "first"): 4,
        ("lucky", "more"): 30,
        ("good", "more"): 20,
    }

    def count(one: VoiceRecording, sentences: Sequence[str]) -> int:
        return wrong[one.text, sentences[0]]

    names = ("present", "poor", "lucky", "good")
    rounds = [Round(["first"], 2), Round(["more"], 1)]
    best, counts = choose([make_recording(name) for name in names], rounds, count)
    assert names[best] == "good"
    assert counts == [[9], [10], [2, 30], [4, 20]]


def test_the_present_recording_stays_unless_another_is_better() -> None:
    same = [make_recording("present"), make_recording("other")]
    assert choose(same, [Round(["first"], 1)], lambda one, sentences: 3)[0] == 0


def test_no_sentence_of_the_evaluation_is_taken() -> None:
    first, more = draw_rounds(24, 60, kept=4, evaluated=200, seed=701)
    drawn = [*first.sentences, *more.sentences]
    assert len(set(drawn)) == 84
    assert (first.kept, more.kept) == (4, 1)
    assert not set(drawn) & set(sample_sentences(200, 701))
    with pytest.raises(ValueError, match="other sentences"):
        draw_rounds(len(available_sentences()) - 200, 1, kept=1, evaluated=200, seed=701)


def test_a_recording_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    shutil.copytree(MING_MINI / "talker" / "data", tmp_path / "talker" / "data")
    before = read_recordings(tmp_path)
    new = VoiceRecording("A new text.", np.arange(-3000, 3000, dtype=np.int16))
    replace_recordings(tmp_path, {**before, "alpha": new})
    after = read_recordings(tmp_path)
    assert list(after) == list(before)
    for name, one in after.items():
        expected = new if name == "alpha" else before[name]
        assert one.text == expected.text
        assert np.array_equal(one.samples, expected.samples)
    assert "talker/data/voices/alpha.flac" in (tmp_path / CHECKSUM_FILE).read_text()
    verify_checksums(tmp_path)


class SaidBy:
    """A server of which every sentence has its seed and the recording as its samples."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, int, str]] = []

    def say(self, text: str, voice: str | None, seed: int, **fields: str) -> np.ndarray:
        self.asked.append((text, voice, seed, fields["ref_text"]))
        return np.array([seed])


def test_wrong_words_are_counted_of_what_a_server_says_with_the_recording() -> None:
    server = SaidBy()
    heard = [["seven", "birds"], ["a", "green", "brook", "too"]]
    count = count_wrong_words(cast(ServedSpeaker, server), lambda samples: heard[int(samples[0])])
    assert count(make_recording("A recording."), ["Seven birds.", "A green book."]) == 2
    assert sorted(server.asked) == [
        ("A green book.", None, 1, "A recording."),
        ("Seven birds.", None, 0, "A recording."),
    ]
