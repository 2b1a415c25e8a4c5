"""Copies of a corpus say the same words, and sound different."""

from random import Random

import numpy as np
import pytest
import torch

from cookbook.ming_mini.augmentation import (
    FREE,
    MAX_PAUSE_S,
    SPEAKER_STRIDE,
    Copies,
    change_chunk,
    locked,
)
from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.vocoder import RATE

CPU = torch.device("cpu")


@pytest.mark.parametrize("speed", FREE.speeds)
def test_a_tone_played_faster_is_a_higher_tone(speed: int) -> None:
    tone = np.round(9000 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)).astype(np.int16)
    chunk = Chunk(tone, np.array([0, RATE]), np.array([0]), ("A",))
    (played,) = [change_chunk(chunk, speed, FREE, Random(0), CPU).clip(0)]
    played = played[-(RATE * 100 // speed) :]
    crossings = np.count_nonzero(np.diff(np.signbit(played)))
    assert crossings / 2 / (len(played) / RATE) == pytest.approx(440 * speed / 100, rel=0.01)
    assert np.abs(played[100:-100]).max() == pytest.approx(9000, rel=0.02)


def test_a_copy_has_every_clip_once_and_no_other(chunk: Chunk) -> None:
    for seed in range(8):
        copy = change_chunk(chunk, 100, FREE, Random(seed), CPU)
        for text in chunk.texts:
            assert sum(text in said for said in copy.texts) == 1
        for number, said in enumerate(copy.texts):
            parts = [index for index, text in enumerate(chunk.texts) if text in said]
            parts.sort(key=lambda index: said.index(chunk.texts[index]))
            assert " ".join(chunk.texts[index] for index in parts) == said
            assert {chunk.speakers[index] for index in parts} == {copy.speakers[number]}
            clip, spoken = copy.clip(number), [chunk.clip(index) for index in parts]
            start = len(clip) - len(spoken[-1])
            assert np.array_equal(clip[start:], spoken[-1])
            silence = len(clip) - sum(len(one) for one in spoken)
            assert silence <= (FREE.max_delay_s + MAX_PAUSE_S * (len(parts) - 1)) * RATE


def test_clips_of_one_speaker_are_joined_and_of_two_are_not(chunk: Chunk) -> None:
    counts = {len(change_chunk(chunk, 100, FREE, Random(seed), CPU).texts) for seed in range(12)}
    # Two speakers with two clips each.
    assert counts == {2, 3, 4}


def test_changes_of_locked_pulses_leave_them_in_their_places(chunk: Chunk) -> None:
    latent = 100
    whole = Chunk(
        np.concatenate([np.resize(chunk.clip(index), 1000 * latent) for index in range(4)]),
        np.arange(5) * 1000 * latent,
        chunk.speakers,
        chunk.texts,
    )
    starts = set[int]()
    for seed in range(8):
        copy = change_chunk(whole, 100, locked(latent), Random(seed), CPU)
        assert not (np.diff(copy.offsets) % latent).any()
        silent = len(copy.samples) - len(whole.samples)
        assert silent % latent == 0
        starts |= {int(np.flatnonzero(copy.clip(0))[0]) // latent}
    assert starts == {0, 1}
    assert locked(latent).speeds == (100,)


def test_a_faster_speaker_is_another_one(chunk: Chunk) -> None:
    copy = change_chunk(chunk, FREE.speeds[2], FREE, Random(1), CPU)
    assert min(copy.speakers) >= SPEAKER_STRIDE
    spoken = len(copy.samples) - (FREE.max_delay_s * 4 + MAX_PAUSE_S * 2) * RATE
    assert spoken <= len(chunk.samples) * 100 / FREE.speeds[2] <= len(copy.samples)


def test_a_clip_that_follows_an_instruction_stays_alone(chunk: Chunk) -> None:
    asked = Chunk(chunk.samples, chunk.offsets, chunk.speakers, chunk.texts, ("Slowly.",) * 4)
    copy = change_chunk(asked, 100, FREE, Random(3), CPU)
    assert sorted(copy.texts) == sorted(chunk.texts)
    assert copy.instructions == ("Slowly.",) * 4


def test_every_chunk_is_given_as_often_as_it_should(chunk: Chunk) -> None:
    copies = Copies(3, FREE, seed=0, device=CPU)
    assert list(copies.originals([chunk, chunk])) == [chunk, chunk]
    assert len(list(copies.changed(60.0))) == 4
    assert not list(copies.changed(60.0))
    alone = Copies(1, FREE, seed=0, device=CPU)
    assert list(alone.originals([chunk])) == [chunk]
    assert not list(alone.changed(60.0))


def test_copies_wait_when_there_is_no_time(chunk: Chunk) -> None:
    copies = Copies(2, FREE, seed=0, device=CPU)
    list(copies.originals([chunk]))
    assert not list(copies.changed(0.0))
    assert len(list(copies.changed(60.0))) == 1
