"""Silence trimming: the corrected rule of the reference, and what it must never do."""

import random

import numpy as np
import pytest
import torch

from sglang_omni.models.ming.speech.silence import SilenceTrimmer, trim_silence
from tests.testing.golden import cases, load_case

RATE = 1000


def trim(pcm: np.ndarray, sizes: list[int], rate: int = RATE) -> list[np.ndarray]:
    trimmer = SilenceTrimmer(rate)
    chunks = np.split(pcm, np.cumsum(sizes)[:-1])
    return [trimmer.push(chunk, index == len(sizes) - 1) for index, chunk in enumerate(chunks)]


def speech(*levels: float) -> np.ndarray:
    """0.1 s per level, at 1 kHz."""
    return np.repeat(np.array(levels, np.float32), RATE // 10)


@pytest.mark.parametrize("name", cases("vae", "silence_"))
def test_trimming_matches_the_corrected_reference(name: str) -> None:
    """`out` of a case has the reference's holder defect; `out_corrected` is what it means."""
    case = load_case(name)
    rate, pcm = case.info["sample_rate"], case["chunks"].numpy()
    out = trim(pcm, case.info["chunk_samples"], rate)
    assert [len(chunk) for chunk in out] == case.info["out_corrected_samples"]
    case.check("out_corrected", torch.from_numpy(np.concatenate(out)))
    case.check("one_shot_trim", torch.from_numpy(trim_silence(pcm, rate)))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_played_is_always_a_prefix_of_what_was_spoken(seed: int) -> None:
    """Nothing is repeated and nothing inside is dropped, however silence falls into chunks."""
    draw = random.Random(seed)
    levels = [draw.choice((0.0, 0.0, 0.5)) for _ in range(40)] + [0.5]
    pcm = speech(*levels) * (1 + np.arange(4100, dtype=np.float32) / 4100)
    sizes: list[int] = []
    while sum(sizes) < len(pcm):
        sizes.append(min(draw.choice((30, 250, 400, 700)), len(pcm) - sum(sizes)))
    assert np.array_equal(np.concatenate(trim(pcm, sizes)), pcm)


def test_a_pause_is_released_by_the_speech_after_it_and_only_once() -> None:
    loud, quiet = speech(0.5, 0.4, 0.3), speech(0, 0, 0)
    out = trim(np.concatenate((loud, quiet, loud, loud)), [300, 300, 300, 300])
    assert [len(chunk) for chunk in out] == [300, 0, 600, 300]


def test_trailing_silence_is_cut_to_three_tenths_of_a_second() -> None:
    assert len(trim_silence(speech(0.5, *[0.0] * 9), RATE)) == 400
    assert [len(x) for x in trim(speech(0.5, *[0.0] * 9), [500, 500])] == [100, 300]


def test_output_is_float32_even_for_an_empty_push() -> None:
    trimmer = SilenceTrimmer(RATE)
    out = trimmer.push(np.zeros(0, dtype=np.float64), False)
    assert out.dtype == np.float32
    assert out.shape == (0,)
