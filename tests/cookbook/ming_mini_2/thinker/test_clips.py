"""Folders of clips that another program made."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini_2.thinker.clip_folder import (
    SpokenClip,
    chunk_files,
    clips_from,
    read_chunk,
    write_chunk,
)
from cookbook.ming_mini_2.thinker.clip_tasks import clip_items
from cookbook.ming_mini_2.thinker.evaluation.clips import held_out_texts, jobs_for
from cookbook.ming_mini_2.thinker.excluded import Excluded
from cookbook.ming_mini_2.thinker.make import Clips
from cookbook.ming_mini_2.thinker.spoken_texts import (
    SpokenText,
    rare_words,
    read_texts,
    said_aloud,
    spoken_texts,
    training_texts,
    write_texts,
)
from cookbook.ming_mini_2.thinker.tasks import select
from cookbook.ming_mini_2.voices.synthesize import is_unchanged
from measurement.media_files import encode_wav
from sglang_omni.media.audio import decode
from sglang_omni.media.limits import MediaLimits
from sglang_omni.models.ming.media_rules import SAMPLE_RATE
from tests.cookbook.ming_mini_2.thinker.conftest import hummed
from tests.cookbook.thinker.conftest import LEXICON


def test_chunks_survive_the_disk(tmp_path: Path) -> None:
    clips = [SpokenClip(hummed(text), text, "a") for text in ("one two", "naïve three")]
    write_chunk(tmp_path / "chunk-00000.npz", clips)
    found = read_chunk(tmp_path / "chunk-00000.npz")
    assert [(one.text, one.voice) for one in found] == [(one.text, one.voice) for one in clips]
    assert all(np.array_equal(a.samples, b.samples) for a, b in zip(found, clips, strict=True))


@pytest.mark.parametrize("as_bytes", [np.bytes_, lambda data: np.frombuffer(data, np.uint8)])
def test_texts_are_json_in_bytes_of_either_form(
    as_bytes: Callable[[bytes], np.ndarray], tmp_path: Path
) -> None:
    np.savez(
        tmp_path / "chunk-00001.npz",
        audio=np.arange(10, dtype=np.int16),
        ends=np.array([4, 10]),
        texts=as_bytes(b'["a", "b"]'),
        voices=as_bytes(b'["v", "w"]'),
    )
    first, second = read_chunk(tmp_path / "chunk-00001.npz")
    assert (first.text, second.voice) == ("a", "w")
    assert first.samples.tolist() == [0, 1, 2, 3]


def test_a_chunk_whose_arrays_disagree_is_named(tmp_path: Path) -> None:
    path = tmp_path / "chunk-00002.npz"
    write_chunk(path, [SpokenClip(hummed("one"), "one", "a")])
    with np.load(path) as data:
        arrays = dict(data)
    np.savez(path, **arrays | {"ends": arrays["ends"] - 1})
    with pytest.raises(ValueError, match="chunk-00002"):
        read_chunk(path)


def test_a_clip_is_heard_as_the_server_hears_its_file() -> None:
    samples = hummed("one two three")
    theirs = decode(encode_wav(samples, 44_100), MediaLimits(), SAMPLE_RATE)
    ours = SpokenClip(samples, "", "").at_16khz().astype(np.float32) / 32768
    assert len(ours) == len(theirs)
    assert np.abs(ours - theirs).max() < 1e-4


def test_clips_are_read_from_any_chunk_on_once(clips: Clips) -> None:
    texts = [clip.text for clip in clips_from(clips.folder, 1)]
    assert sorted(texts) == sorted(clips.texts)
    assert texts[0] == read_chunk(chunk_files(clips.folder)[1])[0].text


def test_a_folder_without_chunks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(clips_from(tmp_path, 0))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Please calculate 20-7.", "Please calculate twenty minus seven."),
        ("20 - 7?", "twenty minus seven?"),
        ("64-21+27", "sixty-four minus twenty-one plus twenty-seven."),
        ("10x3", "ten times three."),
        ("10 x 3", "ten times three."),
        ("10 \u00d7 3 * 2", "ten times three times two."),
        ("Is six x-rays' twenty-one less?", "Is six x-rays' twenty-one less?"),
    ],
)
def test_signs_of_a_sum_are_said_with_or_without_blanks(written: str, said: str) -> None:
    assert said_aloud(Item("sum_in_figures", written, "")).text == said


def test_spoken_texts_survive_the_disk_and_find_their_answers(
    tmp_path: Path, excluded: Excluded
) -> None:
    path = tmp_path / "texts.jsonl"
    count = write_texts(path, spoken_texts(1, LEXICON, excluded), 300)
    texts = read_texts(path)
    assert len(texts) == count
    asked = [one for one in texts.values() if one.answer]
    assert 0.3 < len(asked) / len(texts) < 0.8
    for one in texts.values():
        items = clip_items(one.text, texts, Random(1))
        assert [item.task for item in items] == ["transcribe", "spoken_question"][: len(items)]
        assert (len(items) == 2) == bool(one.answer)
        assert items[0].answer == one.text
        assert len({item.split for item in items}) == 1
        assert not any(char.isdigit() for char in one.text)


def test_texts_to_train_on_have_rows_of_rare_words(excluded: Excluded) -> None:
    everyday = LEXICON.nouns[0]
    phrases = ("an euphonious trill of silver laughter", f"the {everyday}")
    lexicon = replace(LEXICON, phrases=phrases)
    rare = rare_words(lexicon)
    assert "euphonious" in rare
    assert not {everyday, "of", "an"} & set(rare)
    texts = list(islice(training_texts(1, lexicon, excluded), 600))
    plain = {one.text for one in islice(spoken_texts(1, lexicon, excluded), 600)}
    rows = [one.text for one in texts if one.text not in plain and not one.answer]
    assert 0.1 < len(rows) / len(texts) < 0.3
    assert all(any(word in text.lower() for word in rare) for text in rows)


def test_texts_to_train_on_have_more_of_the_questions_answered_worst(excluded: Excluded) -> None:
    plain, texts = (
        list(islice(make(1, LEXICON, excluded), 2000)) for make in (spoken_texts, training_texts)
    )

    def share(found: list[SpokenText]) -> float:
        asked = ("Which is larger", "Order these", "Who has", "Is there the letter", "Spell")
        return sum(one.text.startswith(asked) or " even " in one.text for one in found) / len(found)

    assert share(plain) < 0.1
    assert share(texts) > share(plain) + 0.04


def test_a_text_that_nobody_knows_is_written_down_only() -> None:
    (item,) = clip_items("The cat sleeps.", {}, Random(0))
    assert (item.task, item.answer) == ("transcribe", "The cat sleeps.")
    assert SpokenText("The cat sleeps.").answer == ""


def test_clips_of_the_evaluation_are_held_out_and_said_once(excluded: Excluded) -> None:
    texts = held_out_texts(5, 6, LEXICON, excluded)
    assert sum(bool(one.answer) for one in texts) == 6
    assert len({one.text for one in texts}) == 12
    for one in texts:
        items = clip_items(one.text, {one.text: one}, Random(1))
        assert select(items, "train", excluded) == []
    said = {"phrases": ("the letter came late",), "definitions": ("a place to live and work",)}
    jobs = list(jobs_for(5, texts, replace(LEXICON, **said)))
    assert [job.text for job in jobs] == [one.text for one in texts]
    assert all(len(job.takes) == 1 and is_unchanged(job.takes[0]) for job in jobs)
