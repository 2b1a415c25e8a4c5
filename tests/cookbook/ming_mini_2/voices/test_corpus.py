"""Chunks hold what was made, can be read by both halves, and a later call adds to them."""

import json
from pathlib import Path

import numpy as np
import pytest

from cookbook.ming_mini_2.voices.corpus import (
    VoiceCorpusFolder,
    record_chunk,
    write_corpus,
)
from cookbook.ming_mini_2.voices.synthesize import VoiceClip


def test_a_chunk_has_the_arrays_that_both_halves_read(voice_clips: list[VoiceClip]) -> None:
    arrays = record_chunk(voice_clips)
    assert arrays["audio"].dtype == np.int16
    assert arrays["ends"].dtype == np.int64
    assert arrays["ends"][-1] == len(arrays["audio"])
    texts, voices, manners = (
        json.loads(arrays[name].tobytes()) for name in ("texts", "voices", "manners")
    )
    assert texts == [clip.text for clip in voice_clips]
    assert voices == ["joan", "joan", "joe", "joe"]
    assert [bool(one) for one in manners] == [False, False, True, False]
    assert manners[2] == {"speed": "slow", "instruction": voice_clips[2].take.instruction}


def test_clips_and_instructions_are_read_back(voice_clips: list[VoiceClip], tmp_path: Path) -> None:
    hours, count = write_corpus(tmp_path, voice_clips, 1.0, 60.0, chunk_clips=3)
    assert count == 2
    assert hours * 3600 * 44_100 == pytest.approx(sum(len(clip.samples) for clip in voice_clips))
    first, second = VoiceCorpusFolder(tmp_path).new_chunks()
    np.testing.assert_array_equal(first.clip(1), voice_clips[1].samples)
    assert first.speakers.tolist() == [0, 0, 1]
    assert second.speakers.tolist() == [1]
    assert first.instructions == ("", "", voice_clips[2].take.instruction)


def test_recordings_are_read_back_as_clips(voice_clips: list[VoiceClip], tmp_path: Path) -> None:
    write_corpus(tmp_path, voice_clips, 1.0, 60.0, chunk_clips=4)
    (chunk,) = VoiceCorpusFolder(tmp_path).new_chunks()
    assert chunk.recordings is not None
    assert chunk.recordings.clips.tolist() == [0, 1, 3]
    recorded = chunk.select_recorded(chunk.recordings)
    assert recorded.texts == ("Hi.", "Good morning.", "The cat is on the mat.")
    np.testing.assert_array_equal(recorded.clip(2), voice_clips[3].samples[::-1])
    last = chunk.recordings.locked[chunk.recordings.offsets[2] :]
    np.testing.assert_array_equal(last, voice_clips[3].samples)
    assert recorded.speakers.tolist() == [0, 0, 1]


def test_a_chunk_may_have_no_recordings(voice_clips: list[VoiceClip], tmp_path: Path) -> None:
    write_corpus(tmp_path, [voice_clips[2]], 1.0, 60.0, chunk_clips=4)
    (chunk,) = VoiceCorpusFolder(tmp_path).new_chunks()
    assert chunk.recordings is not None
    assert chunk.select_recorded(chunk.recordings).texts == ()


def test_a_later_call_adds_chunks_and_a_finished_corpus_stays(
    voice_clips: list[VoiceClip], tmp_path: Path
) -> None:
    write_corpus(tmp_path, voice_clips, 1.0, 60.0, chunk_clips=4)
    write_corpus(tmp_path, voice_clips[:2], 1.0, 60.0, chunk_clips=4)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "chunk-00000.npz",
        "chunk-00001.npz",
    ]
    assert write_corpus(tmp_path, voice_clips, 1.0, 0.0, chunk_clips=4) == (0.0, 0)
