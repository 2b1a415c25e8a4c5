"""Copies of a corpus say the same words, and sound different."""

from random import Random

import numpy as np
import pytest
import torch

from cookbook.ming_mini.augmentation import (
    LATEST,
    PAUSE,
    SPEAKERS_APART,
    SPEEDS,
    Copies,
    change_chunk,
    resample,
)
from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.vocoder import RATE

CPU = torch.device("cpu")


@pytest.mark.parametrize("speed", [0.92, 1.0, 1.08])
@pytest.mark.parametrize("hertz", [220.0, 6000.0])
def test_a_tone_played_faster_is_a_higher_tone(speed: float, hertz: float) -> None:
    seconds = torch.arange(RATE, dtype=torch.float64) / RATE
    played = resample(torch.sin(2 * torch.pi * hertz * seconds).float(), speed)
    assert len(played) == int(RATE / speed)
    there = torch.arange(len(played), dtype=torch.float64) / RATE
    wanted = torch.sin(2 * torch.pi * hertz * speed * there).float()
    middle = slice(50, -50)
    assert (played - wanted)[middle].square().mean() < 1e-5


def test_what_would_fold_back_is_cut() -> None:
    seconds = torch.arange(RATE, dtype=torch.float64) / RATE
    played = resample(torch.sin(2 * torch.pi * 21_900 * seconds).float(), 1.08)
    assert played[50:-50].square().mean() < 0.2 * 0.5


def test_a_copy_has_every_clip_once_and_no_other(chunk: Chunk) -> None:
    for seed in range(8):
        copy = change_chunk(chunk, 1.0, Random(seed), CPU)
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
            assert silence <= (LATEST + PAUSE * (len(parts) - 1)) * RATE


def test_clips_of_one_speaker_are_joined_and_of_two_are_not(chunk: Chunk) -> None:
    counts = {len(change_chunk(chunk, 1.0, Random(seed), CPU).texts) for seed in range(12)}
    # Two speakers with two clips each.
    assert counts == {2, 3, 4}


def test_a_faster_speaker_is_another_one(chunk: Chunk) -> None:
    copy = change_chunk(chunk, SPEEDS[2], Random(1), CPU)
    assert min(copy.speakers) >= SPEAKERS_APART
    spoken = len(copy.samples) - (LATEST * 4 + PAUSE * 2) * RATE
    assert spoken <= len(chunk.samples) / SPEEDS[2] <= len(copy.samples)


def test_a_clip_that_follows_an_instruction_stays_alone(chunk: Chunk) -> None:
    asked = Chunk(chunk.samples, chunk.offsets, chunk.speakers, chunk.texts, ("Slowly.",) * 4)
    copy = change_chunk(asked, 1.0, Random(3), CPU)
    assert sorted(copy.texts) == sorted(chunk.texts)
    assert copy.instructions == ("Slowly.",) * 4


def test_every_chunk_is_given_as_often_as_it_should(chunk: Chunk) -> None:
    copies = Copies(3, seed=0, device=CPU)
    assert list(copies.originals([chunk, chunk])) == [chunk, chunk]
    assert len(list(copies.changed(60.0))) == 4
    assert not list(copies.changed(60.0))
    alone = Copies(1, seed=0, device=CPU)
    assert list(alone.originals([chunk])) == [chunk]
    assert not list(alone.changed(60.0))


def test_copies_wait_when_there_is_no_time(chunk: Chunk) -> None:
    copies = Copies(2, seed=0, device=CPU)
    list(copies.originals([chunk]))
    assert not list(copies.changed(0.0))
    assert len(list(copies.changed(60.0))) == 1
